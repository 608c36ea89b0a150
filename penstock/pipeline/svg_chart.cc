// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/svg_chart.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "penstock/base/str_append.h"
#include "penstock/base/str_format.h"
#include "penstock/pipeline/report_page.h"

namespace penstock {
namespace {

constexpr int kWidth = 720;
constexpr int kHeight = 220;
constexpr int kLeft = 52;
constexpr int kRight = 12;
constexpr int kTop = 12;
constexpr int kBottom = 40;

// 1, 2 or 5 times a power of ten, so that about four steps reach `top`.
double nice_step(double top) {
  const double raw = std::max(top, 1e-9) / 4;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (raw <= factor * power) return factor * power;
  }
  return 10 * power;
}

struct Plot {
  double x_end;
  double y_end;
  double x(double value) const { return kLeft + value / x_end * (kWidth - kLeft - kRight); }
  double y(double value) const {
    return kHeight - kBottom - value / y_end * (kHeight - kTop - kBottom);
  }
};

std::string open_svg(int height) {
  return str_format("<svg viewBox=\"0 0 {} {}\" role=\"img\">", kWidth, height);
}

void add_y_axis(std::string& out, const Plot& plot, double step, const std::string& label) {
  for (double value = 0; value <= plot.y_end + step / 1000; value += step) {
    str_append(out,
               "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
               "<text class=\"tick\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>",
               kLeft, kWidth - kRight, plot.y(value), plot.y(value), kLeft - 6, plot.y(value) + 4,
               plain_number(value));
  }
  str_append(out,
             "<text class=\"label\" transform=\"translate(12 {}) rotate(-90)\" "
             "text-anchor=\"middle\">{}</text>",
             (kHeight - kBottom + kTop) / 2, html_escape(label));
}

void add_x_label(std::string& out, const std::string& label) {
  str_append(out, "<text class=\"label\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
             (kLeft + kWidth - kRight) / 2, kHeight - 6, html_escape(label));
}

}  // namespace

std::string plain_number(double value) {
  if (value == 0) return "0";
  const int digits = 2 - int(std::floor(std::log10(std::abs(value))));
  std::string text = str_format("{:.{}f}", value, std::clamp(digits, 0, 9));
  if (!text.contains('.')) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string line_chart(const std::vector<ChartSeries>& series, double x_end,
                       const std::string& x_label, const std::string& y_label) {
  double top = 0;
  for (const ChartSeries& one : series) {
    for (double value : one.values) top = std::max(top, value);
  }
  const double y_step = nice_step(top);
  const Plot plot{std::max(x_end, 1e-9), std::max(std::ceil(top / y_step), 1.0) * y_step};
  std::string out = open_svg(kHeight);
  add_y_axis(out, plot, y_step, y_label);
  const double x_step = nice_step(plot.x_end);
  for (double value = 0; value <= plot.x_end + x_step / 1000; value += x_step) {
    str_append(out, "<text class=\"tick\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
               plot.x(value), kHeight - kBottom + 16, plain_number(value));
  }
  for (std::size_t s = 0; s < series.size(); ++s) {
    str_append(out, "<polyline class=\"line series-{}\" points=\"", s % 6);
    const std::vector<double>& values = series[s].values;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double x = (double(i) + 0.5) / double(values.size()) * plot.x_end;
      str_append(out, "{:.1f},{:.1f} ", plot.x(x), plot.y(values[i]));
    }
    str_append(out, "\"><title>{}</title></polyline>", html_escape(series[s].name));
  }
  add_x_label(out, x_label);
  return out + "</svg>";
}

std::string bar_chart(const std::vector<ChartBar>& bars) {
  constexpr int kRow = 28;
  constexpr int kNameWidth = 120;
  constexpr int kTextWidth = 210;
  double top = 1e-9;
  for (const ChartBar& bar : bars) top = std::max({top, bar.value, bar.marker});
  std::string out = open_svg(int(bars.size()) * kRow + 8);
  const double scale = (kWidth - kNameWidth - kTextWidth) / top;
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const ChartBar& bar = bars[i];
    const double y = double(i) * kRow + 4;
    str_append(out,
               "<text class=\"name\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>"
               "<rect class=\"bar series-{}\" x=\"{}\" y=\"{:.1f}\" width=\"{:.1f}\" "
               "height=\"{}\"/>",
               kNameWidth - 8, y + 15, html_escape(bar.label), i % 6, kNameWidth, y,
               std::max(bar.value * scale, 1.0), kRow - 8);
    if (bar.marker > 0) {
      const double x = kNameWidth + bar.marker * scale;
      str_append(out,
                 "<line class=\"marker\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" "
                 "y2=\"{:.1f}\"/>",
                 x, x, y, y + kRow - 8);
    }
    str_append(out, "<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>",
               kNameWidth + std::max(bar.value, bar.marker) * scale + 8, y + 15,
               html_escape(bar.text));
  }
  return out + "</svg>";
}

std::string column_chart(const std::vector<double>& values, const std::vector<std::string>& labels,
                         const std::string& x_label, const std::string& y_label) {
  const double top = values.empty() ? 1 : std::max(1.0, std::ranges::max(values));
  const double step = nice_step(top);
  const Plot plot{double(std::max<std::size_t>(values.size(), 1)), std::ceil(top / step) * step};
  std::string out = open_svg(kHeight);
  add_y_axis(out, plot, step, y_label);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double left = plot.x(double(i));
    const double right = plot.x(double(i) + 1);
    str_append(out,
               "<rect class=\"bar series-0\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
               "height=\"{:.1f}\"/>",
               left + 0.5, plot.y(values[i]), std::max(right - left - 1, 0.5),
               plot.y(0) - plot.y(values[i]));
    if (i < labels.size() && !labels[i].empty()) {
      str_append(out, "<text class=\"tick\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                 left, kHeight - kBottom + 16, html_escape(labels[i]));
    }
  }
  add_x_label(out, x_label);
  return out + "</svg>";
}

}  // namespace penstock
