// SPDX-License-Identifier: Apache-2.0
#include "penstock/records/custom_json.h"

#include <simdjson.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

Result<void> check_length(std::size_t bytes) {
  if (bytes <= kMostCustomBytes) return {};
  return fail(ErrorKind::kExhausted, str_format("a custom value has {} bytes, at most {} are taken",
                                                bytes, kMostCustomBytes));
}

std::unexpected<Error> no_json(simdjson::error_code error) {
  return fail(ErrorKind::kCorrupt,
              str_format("a custom value is no JSON: {}", simdjson::error_message(error)));
}

}  // namespace

Result<std::string> compact_json(std::string_view text) {
  PENSTOCK_TRY(check_length(text.size()));
  simdjson::dom::parser parser;
  simdjson::dom::element value;
  if (const auto error = parser.parse(simdjson::padded_string(text)).get(value)) {
    return no_json(error);
  }
  std::string compact(text.size(), '\0');
  std::size_t size = 0;
  if (const auto error = simdjson::minify(text.data(), text.size(), compact.data(), size)) {
    return no_json(error);
  }
  compact.resize(size);
  return compact;
}

Result<std::string> join_custom(std::span<const std::string> values) {
  std::vector<std::string> distinct;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].empty()) continue;
    auto compact = compact_json(values[i]);
    if (!compact) return std::unexpected(compact.error().context(str_format("value {}", i)));
    if (!std::ranges::contains(distinct, *compact)) distinct.push_back(*std::move(compact));
  }
  if (distinct.empty()) return std::string();
  if (distinct.size() == 1) return std::move(distinct.front());
  std::string joined = R"({"branches":[)";
  for (const std::string& value : distinct) {
    if (!joined.ends_with('[')) joined += ',';
    joined += value;
  }
  joined += "]}";
  PENSTOCK_TRY(check_length(joined.size()));
  return joined;
}

std::string to_json_line(const FrameResult& result, std::string_view custom) {
  std::string line = to_json_line(result);
  if (custom.empty()) return line;
  line.back() = ',';  // Instead of the brace.
  line += R"("custom":)";
  line += custom;
  line += '}';
  return line;
}

}  // namespace penstock
