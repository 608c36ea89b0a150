// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/json_object.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

std::string_view type_name(element value) {
  switch (value.type()) {
    case element_type::ARRAY:
      return "an array";
    case element_type::OBJECT:
      return "an object";
    case element_type::INT64:
    case element_type::UINT64:
      return "an integer";
    case element_type::DOUBLE:
      return "a number";
    case element_type::STRING:
      return "a string";
    case element_type::BOOL:
      return "a boolean";
    case element_type::NULL_VALUE:
      return "null";
    default:
      return "something else";
  }
}

void report_type(JsonErrors& errors, const std::string& path, std::string_view wanted,
                 element value) {
  errors.report(ErrorKind::kCorrupt,
                str_format("'{}' must be {}, not {}", path, wanted, type_name(value)));
}

}  // namespace

std::optional<std::string> json_string(element value, const std::string& path, JsonErrors& errors) {
  std::string_view text;
  if (value.get_string().get(text)) {
    report_type(errors, path, "a string", value);
    return std::nullopt;
  }
  // NUL would end the name early in every C interface behind us.
  if (text.find('\0') != std::string_view::npos) {
    errors.report(ErrorKind::kCorrupt, str_format("'{}' contains a NUL character", path));
    return std::nullopt;
  }
  return std::string(text);
}

std::optional<float> json_number(element value, const std::string& path, JsonErrors& errors) {
  double number = 0;
  if (!value.is_number() || value.get_double().get(number)) {
    report_type(errors, path, "a number", value);
    return std::nullopt;
  }
  if (std::abs(number) > std::numeric_limits<float>::max()) {
    errors.report(ErrorKind::kCorrupt, str_format("'{}' is too large", path));
    return std::nullopt;
  }
  return static_cast<float>(number);
}

JsonObject::JsonObject(element value, std::string path, JsonErrors& errors)
    : path_(std::move(path)), errors_(errors) {
  simdjson::dom::object object;
  if (value.get_object().get(object)) {
    report_type(errors_, path_.empty() ? "document" : path_, "an object", value);
    return;
  }
  object_ = object;
}

std::string JsonObject::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : str_format("{}.{}", path_, key);
}

bool JsonObject::has(std::string_view key) const {
  return object_ && !object_->at_key(key).error();
}

void JsonObject::finish() {
  if (!object_ || errors_.first) return;
  std::set<std::string_view> seen;
  for (const auto field : *object_) {
    if (!asked_.contains(field.key)) {
      errors_.report(ErrorKind::kCorrupt, str_format("unknown key '{}'", path_of(field.key)));
    }
    if (!seen.insert(field.key).second) {
      errors_.report(ErrorKind::kCorrupt, str_format("'{}' is given twice", path_of(field.key)));
    }
  }
}

std::optional<element> JsonObject::find(std::string_view key) {
  asked_.emplace(key);
  element value;
  if (errors_.first || !object_ || object_->at_key(key).get(value)) return std::nullopt;
  return value;
}

bool JsonObject::read(std::string_view key, element& value) {
  const auto found = find(key);
  if (found) value = *found;
  return found.has_value();
}

bool JsonObject::read(std::string_view key, std::string& value) {
  const auto found = find(key);
  if (!found) return false;
  if (auto text = json_string(*found, path_of(key), errors_)) value = std::move(*text);
  return true;
}

bool JsonObject::read(std::string_view key, std::int64_t& value) {
  const auto found = find(key);
  if (!found) return false;
  if (!found->is_int64() || found->get_int64().get(value)) {
    report_type(errors_, path_of(key), "an integer", *found);
  }
  return true;
}

bool JsonObject::read(std::string_view key, int& value) {
  std::int64_t wide = value;
  if (!read(key, wide)) return false;
  if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max()) {
    errors_.report(ErrorKind::kCorrupt, str_format("'{}' is out of range", path_of(key)));
  } else {
    value = static_cast<int>(wide);
  }
  return true;
}

bool JsonObject::read(std::string_view key, bool& value) {
  const auto found = find(key);
  if (!found) return false;
  if (found->get_bool().get(value)) report_type(errors_, path_of(key), "true or false", *found);
  return true;
}

bool JsonObject::read(std::string_view key, float& value) {
  const auto found = find(key);
  if (!found) return false;
  if (const auto number = json_number(*found, path_of(key), errors_)) value = *number;
  return true;
}

bool JsonObject::read(std::string_view key, std::vector<element>& value) {
  const auto found = find(key);
  if (!found) return false;
  simdjson::dom::array array;
  if (found->get_array().get(array)) {
    report_type(errors_, path_of(key), "an array", *found);
    return true;
  }
  value.clear();
  for (const element item : array) value.push_back(item);
  return true;
}

bool JsonObject::read(std::string_view key, std::vector<std::string>& value) {
  std::vector<element> items;
  if (!read(key, items)) return false;
  value.clear();
  for (std::size_t i = 0; i < items.size(); ++i) {
    auto text = json_string(items[i], str_format("{}[{}]", path_of(key), i), errors_);
    if (!text) return true;
    value.push_back(std::move(*text));
  }
  return true;
}

JsonObject json_child(JsonObject& parent, std::string_view key) {
  simdjson::dom::element value;
  parent.require(key, value);
  return parent.errors().first ? JsonObject(parent.path_of(key), parent.errors())
                               : JsonObject(value, parent.path_of(key), parent.errors());
}

std::size_t json_choose(JsonErrors& errors, const std::string& path, std::string_view value,
                        std::span<const std::string_view> names, ErrorKind kind) {
  const auto found = std::ranges::find(names, value);
  if (found == names.end()) {
    std::string known;
    for (const std::string_view name : names)
      known += str_format("{}{}", known.empty() ? "" : ", ", name);
    errors.report(kind, str_format("'{}' is '{}'; known are: {}", path, value, known));
    return 0;
  }
  return static_cast<std::size_t>(found - names.begin());
}

}  // namespace penstock
