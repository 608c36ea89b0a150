// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/run_report.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "penstock/base/str_append.h"
#include "penstock/base/str_format.h"
#include "penstock/pipeline/report_page.h"
#include "penstock/pipeline/report_pictures.h"
#include "penstock/pipeline/svg_chart.h"

namespace penstock {
namespace {

constexpr std::size_t kChartLabels = 5;

double ms(Nanoseconds value) { return double(value.count()) / 1e6; }

/// How a subject's sums are worded and scaled.
struct Wording {
  std::string_view title, nothing, unit, total, mean;
  double factor;  ///< Of a mean over frames.
};

constexpr Wording kWordings[] = {
    {"Objects over time", "No object was found.", "objects a frame", "objects", "a frame", 1},
    {"First class of a frame over time", "No class reached the threshold.", "% of the frames",
     "frames", "% of the frames", 100},
    {"Shares of the picture over time", "No pixel was classified.", "% of the picture", "",
     "mean % of the picture", 100},
};

std::string counts_section(const RunSummary& summary) {
  const Subject subject = subject_of(summary.task);
  if (subject == Subject::kNumbers || subject == Subject::kTexts) return {};
  const Wording& words = kWordings[std::size_t(subject)];
  std::string out = str_format("<h2>{}</h2>", words.title);
  const auto labels = summary.largest();
  if (labels.empty()) return out + str_format("<p>{}</p>", words.nothing);
  std::vector<ChartSeries> series;
  std::string legend = "<p class=\"legend\">";
  for (std::size_t i = 0; i < std::min(labels.size(), kChartLabels); ++i) {
    ChartSeries one{labels[i].first, {}};
    for (const CountSeries::Span& span : summary.counts.spans()) {
      const auto found = span.sums.find(labels[i].first);
      const double sum = found == span.sums.end() ? 0 : found->second;
      one.values.push_back(words.factor * sum / double(span.frames));
    }
    legend += str_format("<span class=\"series-{}\"><i></i><b>{}</b></span>", i,
                         html_escape(labels[i].first));
    series.push_back(std::move(one));
  }
  out += line_chart(series, double(summary.frames), "frame", std::string(words.unit));
  out += str_format("{}</p><table><tr><th>label", legend);
  if (!words.total.empty()) out += str_format("<th class=\"n\">{}", words.total);
  out += str_format("<th class=\"n\">{}</tr>", words.mean);
  for (const auto& [label, sum] : labels) {
    out += str_format("<tr><td>{}", html_escape(label));
    if (!words.total.empty()) out += str_format("<td class=\"n\">{:.0f}", sum);
    out += str_format("<td class=\"n\">{:.2f}</tr>", words.factor * sum / double(summary.frames));
  }
  return out + "</table>";
}

std::string places_section(const RunSummary& summary) {
  std::string out;
  const double frames = double(std::max<std::uint64_t>(summary.frames, 1));
  if (!summary.zones.empty()) {
    out += "<h2>Objects in zones over time</h2>";
    std::vector<ChartSeries> series;
    std::string legend = "<p class=\"legend\">";
    for (std::size_t i = 0; i < std::min(summary.zones.size(), kChartLabels); ++i) {
      const std::string& name = summary.zones[i].last.name;
      ChartSeries one{name, {}};
      for (const CountSeries::Span& span : summary.zone_counts.spans()) {
        const auto found = span.sums.find(name);
        one.values.push_back(found == span.sums.end() ? 0 : found->second / double(span.frames));
      }
      legend +=
          str_format("<span class=\"series-{}\"><i></i><b>{}</b></span>", i, html_escape(name));
      series.push_back(std::move(one));
    }
    out += line_chart(series, double(summary.frames), "frame", "objects inside");
    out += legend +
           "</p><table><tr><th>zone<th class=\"n\">inside a frame<th class=\"n\">at most"
           "<th class=\"n\">entered<th class=\"n\">left</tr>";
    for (const ZoneSum& zone : summary.zones) {
      str_append(out,
                 "<tr><td>{}<td class=\"n\">{:.2f}<td class=\"n\">{}<td class=\"n\">{}"
                 "<td class=\"n\">{}</tr>",
                 html_escape(zone.last.name), double(zone.in_frames) / frames, zone.most,
                 zone.last.entered, zone.last.left);
    }
    out += "</table>";
  }
  if (!summary.lines.empty()) {
    out +=
        "<h2>Lines crossed</h2><table><tr><th>line<th class=\"n\">forwards<th "
        "class=\"n\">backwards</tr>";
    for (const LineCount& line : summary.lines) {
      str_append(out, "<tr><td>{}<td class=\"n\">{}<td class=\"n\">{}</tr>", html_escape(line.name),
                 line.forwards, line.backwards);
    }
    out += "</table>";
  }
  return out;
}

std::string latency_section(const RunSummary& summary) {
  std::string out = "<h2>Latency of a frame</h2>";
  const LatencyHistogram& element = summary.of(Stage::kElement);
  if (element.count() == 0) return out + "<p>No frame was analysed.</p>";
  constexpr int kColumns = 40;
  const double top = std::max(ms(element.percentile(1.0)), 1e-3);
  const double width = top / kColumns;
  std::vector<double> columns(kColumns);
  for (const LatencyHistogram::Bucket& bucket : element.buckets()) {
    const int at = std::clamp(int(ms(bucket.upper) / width), 0, kColumns - 1);
    columns[std::size_t(at)] += double(bucket.count);
  }
  std::vector<std::string> labels(kColumns);
  for (int i = 0; i < kColumns; i += 8) {
    labels[std::size_t(i)] = plain_number(i * width);
  }
  out += column_chart(columns, labels, "ms from peninfer's sink pad to its source pad", "frames");
  out += "<h2>Stages</h2>";
  std::vector<ChartBar> bars;
  for (Stage stage : kStages) {
    const LatencyHistogram& times = summary.of(stage);
    if (times.count() == 0) continue;
    const double p50 = ms(times.percentile(0.5));
    const double p95 = ms(times.percentile(0.95));
    const double p99 = ms(times.percentile(0.99));
    bars.push_back({std::string(to_string(stage)), p50, p99,
                    str_format("{:.2f} / {:.2f} / {:.2f} ms", p50, p95, p99)});
  }
  return out + bar_chart(bars) +
         "<p class=\"soft\">Bar: median; tick: 99th percentile; text: p50 / p95 / p99. Frames wait "
         "for their turn in the queue while the workers are busy, so 'in element' is longer than "
         "the sum of the stages' medians.</p>";
}

std::string ledger_section(const RunSummary& summary) {
  std::string out =
      "<h2>Memory ledger</h2><table><tr><th>class<th>where<th class=\"n\">count"
      "<th class=\"n\">a frame<th class=\"n\">bytes a frame</tr>";
  const double frames = double(std::max<std::uint64_t>(summary.frames, 1));
  std::uint64_t copies = 0;
  for (const CopyLedger::Row& row : summary.ledger) {
    if (row.copy_class == CopyClass::kUpstream) continue;
    if (row.copy_class == CopyClass::kFrame) copies += row.count;
    str_append(out,
               "<tr><td>{}<td>{}<td class=\"n\">{}<td class=\"n\">{:.2f}<td "
               "class=\"n\">{:.0f}</tr>",
               to_string(row.copy_class), html_escape(row.site), row.count,
               double(row.count) / frames, double(row.bytes) / frames);
  }
  str_append(out,
             "</table><p>Frames copied on the analytic path, from peninfer's sink pad to the "
             "JSON line: <b>{}</b>. A sweep is a read in place, not a copy.</p>",
             copies);
  return out + outside_section(summary.outside, summary.frames);
}

/// The tiles beside frames and speed, where there is a number that says much.
std::string findings_tile(const RunSummary& summary) {
  const double frames = double(std::max<std::uint64_t>(summary.frames, 1));
  const auto largest = summary.largest();
  switch (subject_of(summary.task)) {
    case Subject::kObjects:
      return str_format(
          "<div class=\"tile\"><b>{:.2f}</b>objects a frame</div>{}",
          double(summary.objects) / frames,
          summary.tracks() == 0
              ? ""
              : str_format("<div class=\"tile\"><b>{}</b>objects tracked</div>", summary.tracks()));
    case Subject::kClasses:
      if (largest.empty()) break;
      return str_format("<div class=\"tile\"><b>{}</b>first in {:.1f} % of the frames</div>",
                        html_escape(largest.front().first), 100 * largest.front().second / frames);
    case Subject::kAreas:
      if (largest.empty()) break;
      return str_format("<div class=\"tile\"><b>{}</b>{:.1f} % of the picture</div>",
                        html_escape(largest.front().first), 100 * largest.front().second / frames);
    case Subject::kTexts:
      return str_format("<div class=\"tile\"><b>{:.1f} %</b>of the frames have text</div>",
                        100 * double(summary.texts) / frames);
    case Subject::kNumbers:
      if (summary.numbers == 0) break;
      return str_format("<div class=\"tile\"><b>{}</b>values a frame</div>", summary.numbers);
  }
  return {};
}

}  // namespace

std::string to_html(const RunSummary& summary) {
  const std::string source = html_escape(summary.source);
  std::string out = page_head(summary.source);
  str_append(out,
             "<h1>{}</h1><p class=\"soft\">{}x{} {}, {:.4g} frames/s &middot; model {} &middot; "
             "device {} &middot; policy {}{}</p>",
             source, summary.shape.width, summary.shape.height, html_escape(summary.shape.format),
             summary.shape.frame_rate, html_escape(summary.model), html_escape(summary.device),
             html_escape(summary.policy),
             subject_of(summary.task) == Subject::kNumbers
                 ? std::string()
                 : str_format(" &middot; threshold {:.2f}", summary.threshold));
  if (!summary.licence.empty()) {
    str_append(out, "<p class=\"soft\">Model licence: {}</p>", html_escape(summary.licence));
  }
  str_append(out,
             "<div class=\"tiles\"><div class=\"tile\"><b>{}</b>frames</div>"
             "<div class=\"tile\"><b>{:.1f}</b>frames a second</div>{}"
             "<div class=\"tile\"><b>{:.1f} s</b>running, {:.2f} s set-up</div></div>",
             summary.frames, summary.frames_per_second(), findings_tile(summary),
             ms(summary.running) / 1e3, ms(summary.set_up) / 1e3);
  for (const std::string& note : summary.notes) {
    str_append(out, "<p>Note: {}</p>", html_escape(note));
  }
  out += counts_section(summary);
  out += places_section(summary);
  out += latency_section(summary);
  out += stages_section(summary.stages);
  out += ledger_section(summary);
  if (!summary.pictures.empty()) {
    out += "<h2>Frames</h2><div class=\"pictures\">";
    for (const ReportPicture& picture : summary.pictures) {
      out += picture_figure(picture, subject_of(summary.task));
    }
    out += "</div>";
  }
  out += kPageTail;
  return out;
}

}  // namespace penstock
