// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/report_json.h"

namespace penstock {

void JsonText::separate() {
  if (!out_.empty() && out_.back() != '{' && out_.back() != '[' && out_.back() != ':') out_ += ',';
}

JsonText& JsonText::begin(char bracket) {
  separate();
  out_ += bracket;
  return *this;
}

JsonText& JsonText::end(char bracket) {
  out_ += bracket;
  return *this;
}

JsonText& JsonText::key(std::string_view name) {
  separate();
  append_json_string(out_, name);
  out_ += ':';
  return *this;
}

JsonText& JsonText::text(std::string_view value) {
  separate();
  append_json_string(out_, value);
  return *this;
}

void append_stages(JsonText& json, const std::vector<LatencyFigures>& stages) {
  json.key("stages").begin('[');
  for (const LatencyFigures& row : stages) {
    json.begin('{').key("stage").text(row.stage).key("stream").text(row.stream);
    json.key("frames").number(row.frames).key("p50_ns").number(std::int64_t{row.p50.count()});
    json.key("p95_ns").number(std::int64_t{row.p95.count()});
    json.key("max_ns").number(std::int64_t{row.max.count()}).end('}');
  }
  json.end(']');
}

void append_ledger(JsonText& json, const std::vector<CopyLedger::Row>& ledger) {
  json.key("ledger").begin('[');
  for (const CopyLedger::Row& row : ledger) {
    if (row.copy_class == CopyClass::kUpstream) continue;
    json.begin('{').key("class").text(to_string(row.copy_class)).key("site").text(row.site);
    json.key("count")
        .number(std::uint64_t{row.count})
        .key("bytes")
        .number(std::uint64_t{row.bytes})
        .end('}');
  }
  json.end(']');
}

}  // namespace penstock
