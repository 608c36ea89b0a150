// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/pipeline_report.h"

#include <chrono>

#include "penstock/base/str_append.h"
#include "penstock/pipeline/report_json.h"
#include "penstock/pipeline/report_page.h"

namespace penstock {
namespace {

std::string sources_table(const std::vector<SourceStatus>& sources) {
  std::string out =
      "<h2>Sources</h2><table><tr><th>source<th>address<th>state<th class=\"n\">frames"
      "<th class=\"n\">frames/s<th class=\"n\">objects<th class=\"n\">sessions</tr>";
  for (const SourceStatus& source : sources) {
    str_append(out,
               "<tr><td>{}<td>{}<td>{}<td class=\"n\">{}<td class=\"n\">{:.1f}<td class=\"n\">{}"
               "<td class=\"n\">{}</tr>",
               html_escape(source.name), html_escape(source.address), to_string(source.state),
               source.frames, source.frames_per_second(), source.objects, source.sessions);
  }
  out += "</table>";
  for (const SourceStatus& source : sources) {
    if (!source.error) continue;
    str_append(out, "<p>{}: {}</p>", html_escape(source.name),
               html_escape(source.error->message()));
  }
  return out;
}

std::string places_table(const std::vector<SourceStatus>& sources) {
  std::string rows;
  for (const SourceStatus& source : sources) {
    for (const auto& [place, counts] : source.places) {
      str_append(rows,
                 "<tr><td>{}<td>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}"
                 "<td class=\"n\">{}</tr>",
                 html_escape(source.name), html_escape(place), counts.entered, counts.left,
                 counts.forwards, counts.backwards);
    }
  }
  if (rows.empty()) return {};
  return "<h2>Zones and lines</h2><table><tr><th>source<th>place<th class=\"n\">entered"
         "<th class=\"n\">left<th class=\"n\">forwards<th class=\"n\">backwards</tr>" +
         rows + "</table>";
}

void append_source(JsonText& json, const SourceStatus& source) {
  json.begin('{').key("name").text(source.name).key("address").text(source.address);
  json.key("state").text(to_string(source.state)).key("sessions").number(source.sessions);
  json.key("frames").number(source.frames);
  json.key("frames_per_second").number(source.frames_per_second());
  json.key("objects").number(source.objects).key("labels").begin('{');
  for (const auto& [label, count] : source.labels) json.key(label).number(count);
  json.end('}').key("places").begin('{');
  for (const auto& [place, counts] : source.places) {
    json.key(place)
        .begin('{')
        .key("entered")
        .number(counts.entered)
        .key("left")
        .number(counts.left);
    json.key("forwards").number(counts.forwards).key("backwards").number(counts.backwards).end('}');
  }
  json.end('}');
  if (source.error) json.key("error").text(source.error->message());
  append_stages(json, source.stages);
  json.end('}');
}

}  // namespace

std::string to_html(const PipelineOutcome& outcome, const std::string& model) {
  std::string out = page_head(str_format("{} sources", outcome.sources.size()));
  str_append(out, "<h1>{} sources</h1><p class=\"soft\">model {}</p>", outcome.sources.size(),
             html_escape(model));
  out += sources_table(outcome.sources);
  out += places_table(outcome.sources);
  out += stages_section(by_stage(outcome.sources));
  out += outside_section(outcome.outside, outcome.frames());
  out += kPageTail;
  return out;
}

std::string to_json(const PipelineOutcome& outcome, const std::string& model) {
  JsonText json;
  json.begin('{').key("model").text(model).key("sources").begin('[');
  for (const SourceStatus& source : outcome.sources) append_source(json, source);
  json.end(']');
  append_ledger(json, outcome.ledger);
  return json.end('}').take() + "\n";
}

}  // namespace penstock
