// SPDX-License-Identifier: Apache-2.0
//
// JSON objects and lists as reports write them: commas are nobody's business.
//
//   JsonText json;
//   json.begin('{');
//   json.key("frames").number(frames);
//   json.key("stages").begin('[');
//   ...
//   json.end(']').end('}');
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/json_text.h"
#include "penstock/observe/copy_ledger.h"
#include "penstock/observe/latency_book.h"

namespace penstock {

class JsonText {
 public:
  JsonText& begin(char bracket);
  JsonText& end(char bracket);
  JsonText& key(std::string_view name);
  JsonText& text(std::string_view value);
  template <typename T>
  JsonText& number(T value) {
    separate();
    append_json_number(out_, value);
    return *this;
  }
  std::string take() { return std::move(out_); }

 private:
  /// Puts a comma where one is needed.
  void separate();
  std::string out_;
};

/// "stages": of elements by stream, times in ns.
void append_stages(JsonText& json, const std::vector<LatencyFigures>& stages);
/// "ledger": what the device touched.
void append_ledger(JsonText& json, const std::vector<CopyLedger::Row>& ledger);

}  // namespace penstock
