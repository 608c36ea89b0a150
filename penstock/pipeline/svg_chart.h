// SPDX-License-Identifier: Apache-2.0
//
// Small SVG charts for report.html. Colours come from the page's CSS (classes series-0 ..
// series-5).
#pragma once

#include <string>
#include <vector>

namespace penstock {

/// Without an exponent, which a reader has to work out: three significant digits of a fraction, all
/// of a whole number.
std::string plain_number(double value);

struct ChartSeries {
  std::string name;
  std::vector<double> values;
};

/// Lines over equally spaced steps; x runs from 0 to `x_end`.
std::string line_chart(const std::vector<ChartSeries>& series, double x_end,
                       const std::string& x_label, const std::string& y_label);

struct ChartBar {
  std::string label;
  double value = 0;
  double marker = 0;  ///< A tick beyond the bar (a higher percentile); 0: none.
  std::string text;   ///< Written at the end of the bar.
};

/// Horizontal bars from 0.
std::string bar_chart(const std::vector<ChartBar>& bars);

/// Vertical columns; `labels` name the columns' lower ends and may be empty for unlabelled ones.
std::string column_chart(const std::vector<double>& values, const std::vector<std::string>& labels,
                         const std::string& x_label, const std::string& y_label);

}  // namespace penstock
