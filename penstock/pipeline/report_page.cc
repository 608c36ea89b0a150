// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/report_page.h"

#include <algorithm>

#include "penstock/base/str_append.h"
#include "penstock/base/str_format.h"
#include "penstock/pipeline/svg_chart.h"

namespace penstock {
namespace {

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

std::string page_head(std::string_view title) {
  return str_format(
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
      "<title>Penstock report: {}</title><style>{}</style></head><body>",
      html_escape(title), kStyle);
}

std::string stages_section(const std::vector<LatencyFigures>& stages) {
  if (stages.empty()) return {};
  std::vector<ChartBar> bars;
  for (const LatencyFigures& row : stages) {
    const bool one_stream = std::ranges::all_of(
        stages, [&](const LatencyFigures& other) { return other.stream == row.stream; });
    bars.push_back({one_stream ? row.stage : row.stage + ", " + row.stream, ms(row.p50),
                    ms(row.p95), str_format("{:.2f} / {:.2f} ms", ms(row.p50), ms(row.p95))});
  }
  std::string out = "<h2>Latency by element and stream</h2>" + bar_chart(bars);
  out +=
      "<p class=\"soft\">From a frame's arrival at the element to its leaving. Bar: median; tick: "
      "95th percentile.</p><table><tr><th>element<th>stream<th class=\"n\">frames"
      "<th class=\"n\">p50 ms<th class=\"n\">p95 ms<th class=\"n\">max ms</tr>";
  for (const LatencyFigures& row : stages) {
    str_append(out,
               "<tr><td>{}<td>{}<td class=\"n\">{}<td class=\"n\">{:.2f}<td class=\"n\">{:.2f}<td "
               "class=\"n\">{:.2f}</tr>",
               html_escape(row.stage), html_escape(row.stream), row.frames, ms(row.p50),
               ms(row.p95), ms(row.max));
  }
  return out + "</table>";
}

}  // namespace penstock
