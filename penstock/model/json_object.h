// SPDX-License-Identifier: Apache-2.0
//
// JsonObject reads one JSON object strictly: every key has a type, a missing or unknown key is an
// error that names it by its path ("preprocess.mean[1]"). The first error of a document sticks in
// its JsonErrors; reads after it leave their targets alone, so that a reader is a plain list of
// fields and is checked once at the end.
//
//   JsonErrors errors;
//   JsonObject root(element, "", errors);
//   root.require("name", name);
//   root.allow("threshold", threshold);
//   root.finish();                        // unknown keys
//   if (errors.first) return std::unexpected(*errors.first);
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/str_format.h"

namespace penstock {

struct JsonErrors {
  std::optional<Error> first;

  void report(ErrorKind kind, std::string message) {
    if (!first) first.emplace(kind, std::move(message));
  }
};

class JsonObject {
 public:
  /// `element` that is no object is an error, and reads as an empty one. `path` is "" for the root.
  JsonObject(simdjson::dom::element element, std::string path, JsonErrors& errors);
  /// An empty object, to go on with after an error.
  JsonObject(std::string path, JsonErrors& errors) : path_(std::move(path)), errors_(errors) {}

  /// Reads a key that must be there.
  template <typename T>
  void require(std::string_view key, T& value) {
    if (!read(key, value) && !errors_.first) {
      errors_.report(ErrorKind::kCorrupt, str_format("missing key '{}'", path_of(key)));
    }
  }
  /// Reads a key that may be absent; true when it was there.
  template <typename T>
  bool allow(std::string_view key, T& value) {
    return read(key, value);
  }
  bool has(std::string_view key) const;

  /// Reports keys that nothing asked for.
  void finish();

  std::string path_of(std::string_view key) const;
  JsonErrors& errors() const { return errors_; }

 private:
  std::optional<simdjson::dom::element> find(std::string_view key);
  bool read(std::string_view key, std::string& value);
  bool read(std::string_view key, std::int64_t& value);
  bool read(std::string_view key, int& value);
  bool read(std::string_view key, bool& value);
  bool read(std::string_view key, float& value);
  bool read(std::string_view key, std::vector<std::string>& value);
  /// The elements themselves; their paths are path_of(key) + "[i]".
  bool read(std::string_view key, std::vector<simdjson::dom::element>& value);
  bool read(std::string_view key, simdjson::dom::element& value);

  std::string path_;
  JsonErrors& errors_;
  std::optional<simdjson::dom::object> object_;
  std::set<std::string, std::less<>> asked_;
};

/// The object at `key`, which must be there.
JsonObject json_child(JsonObject& parent, std::string_view key);
/// Index of `value` in `names`; else an error of `kind` that lists them, and 0.
std::size_t json_choose(JsonErrors& errors, const std::string& path, std::string_view value,
                        std::span<const std::string_view> names,
                        ErrorKind kind = ErrorKind::kCorrupt);

/// The typed value of one element, or an error that names `path`.
std::optional<std::string> json_string(simdjson::dom::element element, const std::string& path,
                                       JsonErrors& errors);
std::optional<float> json_number(simdjson::dom::element element, const std::string& path,
                                 JsonErrors& errors);

}  // namespace penstock
