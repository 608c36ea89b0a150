// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/run_report.h"

#include <glib.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <utility>

#include "penstock/base/str_append.h"
#include "penstock/base/str_format.h"
#include "penstock/pipeline/svg_chart.h"

namespace penstock {
namespace {

constexpr std::size_t kChartLabels = 5;

constexpr std::string_view kStyle = R"(
:root{--ink:#1c2530;--soft:#5b6773;--line:#d9dee3;--ground:#fff;--panel:#f6f8f9}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--ground);max-width:960px;
margin:0 auto;padding:24px}
h1{font-size:24px;margin:0}h2{font-size:17px;margin:32px 0 8px}
p{margin:6px 0}.soft{color:var(--soft)}
.tiles{display:flex;flex-wrap:wrap;gap:12px;margin:18px 0}
.tile{background:var(--panel);border-radius:8px;padding:10px 16px;min-width:120px}
.tile b{display:block;font-size:22px;font-variant-numeric:tabular-nums}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:5px 10px 5px 0;border-bottom:1px solid var(--line)}
th{font-weight:600;color:var(--soft)}td.n,th.n{text-align:right}
svg{width:100%;height:auto;display:block}
.grid{stroke:var(--line)}.tick,.label,.name{font-size:12px;fill:var(--soft)}.name{fill:var(--ink)}
.line{fill:none;stroke-width:2}.marker{stroke:var(--ink);stroke-width:2}
.series-0{color:#1768ac}.series-1{color:#d1495b}.series-2{color:#2e8b57}.series-3{color:#c77d0a}
.series-4{color:#6c4ab6}.series-5{color:#3b8ea5}
.line[class]{stroke:currentColor}.bar{fill:currentColor}
.legend span{margin-right:16px}.legend i{display:inline-block;width:12px;height:12px;
border-radius:3px;background:currentColor;margin-right:6px;vertical-align:-1px}
.legend b{font-weight:400;color:var(--ink)}
.pictures{display:grid;grid-template-columns:repeat(auto-fill,minmax(300px,1fr));gap:14px}
figure{margin:0}figcaption{color:var(--soft);font-size:13px}
.box{fill:none;stroke:#ffcf33;stroke-width:2;vector-effect:non-scaling-stroke}
.dot{fill:#ff5d8f;stroke:#000;stroke-width:1;vector-effect:non-scaling-stroke}
.boxlabel{fill:#ffcf33;paint-order:stroke;stroke:#000;stroke-width:.25em;font-weight:600}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ec;--soft:#9aa5b0;--line:#333b44;
--ground:#14181d;--panel:#1e242b}}
)";

double ms(Nanoseconds value) { return double(value.count()) / 1e6; }

std::string base64(const std::string& bytes) {
  gchar* text = g_base64_encode(reinterpret_cast<const guchar*>(bytes.data()), bytes.size());
  std::string out(text);
  g_free(text);
  return out;
}

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
             "JSON line: <b>{}</b>. A sweep is a read in place, not a copy.</p>"
             "<h2>Copies outside the analytic path</h2><table><tr><th>what<th "
             "class=\"n\">frames<th class=\"n\">a frame</tr>",
             copies);
  const OutsideCopies& outside = summary.outside;
  const auto row = [&](const std::string& what, std::uint64_t count) {
    str_append(out, "<tr><td>{}<td class=\"n\">{}<td class=\"n\">{:.2f}</tr>", what, count,
               double(count) / frames);
  };
  if (outside.upstream_known) {
    row(str_format("upstream: by the decoder {}", html_escape(outside.decoder)), outside.upstream);
  } else {
    str_append(out, "<tr><td>upstream: by the decoder {}<td class=\"n\">not known<td></tr>",
               html_escape(outside.decoder));
  }
  row("drawing the video output, on BGRA copies", outside.drawn);
  row("report pictures (a copy made outside the analytic path)", outside.pictures);
  return out + "</table>";
}

struct LabelPlace {
  double x, y, width;  ///< Left end, base line and an estimate, which no font is asked for.
};

/// Puts labels above, below or within their boxes: inside the picture, and where no other is as far
/// as one of these is free.
class LabelPlaces {
 public:
  LabelPlaces(double width, double height, double font)
      : width_(width), height_(height), font_(font) {}

  LabelPlace place(const Detection& object, const std::string& text) {
    const auto letters = std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; });
    const double width = 0.58 * font_ * double(letters);
    const double x = std::max(0.0, std::min<double>(object.x, width_ - width));
    const double top = object.y, bottom = top + double(object.height);
    const auto at = [&](double y) {
      return LabelPlace{x, std::clamp(y, font_, std::max(font_, height_ - 0.25 * font_)), width};
    };
    LabelPlace best = at(top - 0.25 * font_);
    for (const double y : {top - 0.25 * font_, bottom + font_, top + font_, bottom - 0.25 * font_,
                           top - 1.35 * font_}) {
      if (is_free(at(y))) {
        best = at(y);
        break;
      }
    }
    placed_.push_back(best);
    return best;
  }

 private:
  bool is_free(const LabelPlace& place) const {
    return std::ranges::none_of(placed_, [&](const LabelPlace& other) {
      return std::abs(place.y - other.y) < font_ && place.x < other.x + other.width &&
             other.x < place.x + place.width;
    });
  }

  double width_, height_, font_;
  std::vector<LabelPlace> placed_;  // one an object
};

void append_box(std::string& out, const Detection& object, double font, LabelPlaces& places) {
  if (object.rotated) {
    const RotatedBox& box = *object.rotated;
    str_append(out,
               "<rect class=\"box\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
               "height=\"{:.1f}\" transform=\"rotate({:.2f} {:.1f} {:.1f})\"/>",
               box.center_x - box.width / 2, box.center_y - box.height / 2, box.width, box.height,
               box.angle * 180 / std::numbers::pi_v<float>, box.center_x, box.center_y);
  } else {
    str_append(out,
               "<rect class=\"box\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
               "height=\"{:.1f}\"/>",
               object.x, object.y, object.width, object.height);
  }
  // The surer, the less transparent; one that the model did not see is not there.
  for (const Keypoint& keypoint : object.keypoints) {
    if (!(keypoint.confidence > 0)) continue;
    str_append(out,
               "<circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" "
               "fill-opacity=\"{:.2f}\"/>",
               keypoint.x, keypoint.y, font * 0.2, std::min(keypoint.confidence, 1.0f));
  }
  const std::string text = str_format("{} {:.2f}", object.label, object.confidence);
  const LabelPlace place = places.place(object, text);
  str_append(out,
             "<text class=\"boxlabel\" x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.1f}\">{}</text>",
             place.x, place.y, font, html_escape(text));
}

/// What was found, for below the picture; empty for numbers alone.
std::string caption_of(const FrameResult& result, Subject subject) {
  constexpr std::size_t kShown = 3;
  std::string out;
  switch (subject) {
    case Subject::kObjects:
      return str_format(", {} objects",
                        std::ranges::count(result.objects, false, &Detection::predicted));
    case Subject::kClasses:
      for (std::size_t i = 0; i < std::min(result.classes.size(), kShown); ++i) {
        out += str_format(", {} {:.2f}", html_escape(result.classes[i].label),
                          result.classes[i].confidence);
      }
      return result.classes.empty() ? ", no class" : out;
    case Subject::kAreas:
      for (std::size_t i = 0; i < std::min(result.areas.size(), kShown); ++i) {
        out += str_format(", {} {:.1f} %", html_escape(result.areas[i].label),
                          100 * result.areas[i].fraction);
      }
      return out;
    case Subject::kTexts:
      return result.texts.empty() ? ", no text" : ", " + html_escape(result.texts.front().text);
    case Subject::kNumbers:
      break;
  }
  return out;
}

std::string picture_figure(const ReportPicture& picture, Subject subject) {
  const FrameResult& result = picture.result;
  std::string out;
  const double font = result.width / 40.0;
  str_append(out,
             "<figure><svg viewBox=\"0 0 {0} {1}\"><image width=\"{0}\" height=\"{1}\" "
             "preserveAspectRatio=\"none\" href=\"data:image/jpeg;base64,{2}\"/>",
             result.width, result.height, base64(picture.jpeg));
  LabelPlaces places(result.width, result.height, font);
  for (const Detection& object : result.objects) append_box(out, object, font, places);
  str_append(out, "</svg><figcaption>frame {}{}</figcaption></figure>", result.frame,
             caption_of(result, subject));
  return out;
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

std::string html_escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string to_html(const RunSummary& summary) {
  std::string out =
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">";
  const std::string source = html_escape(summary.source);
  str_append(out, "<title>Penstock report: {}</title><style>{}</style></head><body>", source,
             kStyle);
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
  out += latency_section(summary);
  out += ledger_section(summary);
  if (!summary.pictures.empty()) {
    out += "<h2>Frames</h2><div class=\"pictures\">";
    for (const ReportPicture& picture : summary.pictures) {
      out += picture_figure(picture, subject_of(summary.task));
    }
    out += "</div>";
  }
  return out + "</body></html>\n";
}

}  // namespace penstock
