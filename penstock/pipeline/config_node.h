// SPDX-License-Identifier: Apache-2.0
//
// ConfigNode is a piece of a configuration that somebody wrote, with its place in the text: what
// YAML (config_yaml.h) and the JSON of the control socket (config_json.h) have in common, so that
// one schema reads both. ConfigMap reads one map strictly:
//
//   ConfigMap map(node, "sources[0]", problems);
//   spec.name = map.text("name").value_or("");
//   spec.loop = map.boolean("loop").value_or(false);
//   map.finish();                                   // what nobody asked for is a problem
//
// Nothing ends at the first mistake: all of them are collected, kMaxConfigProblems at most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/clock.h"

namespace penstock {

/// From 1; 0 when the text has no lines that anybody sees.
struct TextPlace {
  int line = 0;
  int column = 0;
  bool operator==(const TextPlace&) const = default;
};

struct ConfigProblem {
  TextPlace place;
  std::string where;  ///< "sources[1].uri"; empty: the whole text.
  std::string what;
};
using ConfigProblems = std::vector<ConfigProblem>;

/// What is past them is not told.
inline constexpr std::size_t kMaxConfigProblems = 100;
/// Bytes of a problem's texts; longer ones end in "...".
inline constexpr std::size_t kMaxProblemText = 1000;

void add_problem(ConfigProblems& problems, TextPlace place, std::string where, std::string what);
/// "p.yaml:12:7: sources[1].uri: is empty"; without a place "p.yaml: sources[1].uri: is empty", and
/// without a file "sources[1].uri: is empty".
std::string to_string(const ConfigProblem& problem, std::string_view file);

struct ConfigEntry;

struct ConfigNode {
  enum class Kind { kNull, kText, kList, kMap };
  Kind kind = Kind::kNull;
  TextPlace place;
  std::string text;                  ///< kText.
  bool quoted = false;               ///< kText that can be no number and no boolean.
  std::vector<ConfigNode> items;     ///< kList.
  std::vector<ConfigEntry> entries;  ///< kMap, in the order of the text; names are told once.
};

struct ConfigEntry {
  std::string name;
  TextPlace place;
  ConfigNode value;
};

/// Reads one map. Every reader answers nothing when the key is absent, and when its value is wrong,
/// which is then among the problems. Lives no longer than the node.
class ConfigMap {
 public:
  /// `path` is the map's own, empty for the whole. Not a map: a problem, and nothing is found.
  ConfigMap(const ConfigNode& node, std::string path, ConfigProblems& problems);

  bool has(std::string_view key) const { return find(key) != nullptr; }
  /// Null when absent.
  const ConfigNode* node(std::string_view key);
  /// Not empty; quoted or plain.
  std::optional<std::string> text(std::string_view key);
  /// `true` or `false`.
  std::optional<bool> boolean(std::string_view key);
  std::optional<double> number(std::string_view key, double least, double most);
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t least, std::int64_t most);
  /// A number with `ms`, `s` or `min`: 500ms, 1.5s.
  std::optional<Nanoseconds> duration(std::string_view key, Nanoseconds least, Nanoseconds most);
  std::optional<std::string> choice(std::string_view key,
                                    const std::vector<std::string_view>& choices);
  /// The items of a list; empty when absent.
  const std::vector<ConfigNode>& list(std::string_view key);

  /// At the key's value, or at the map when it is absent.
  void problem(std::string_view key, std::string what);
  TextPlace place(std::string_view key) const;
  std::string path(std::string_view key) const;

  /// Every key that nobody asked for is a problem, which names those that were.
  void finish();

 private:
  const ConfigEntry* find(std::string_view key) const;
  /// The value as plain or quoted text; a problem that says `wanted` when it is something else.
  const ConfigNode* scalar(std::string_view key, std::string_view wanted, bool plain);

  const ConfigNode& node_;
  std::string path_;
  ConfigProblems& problems_;
  std::vector<std::string> known_;
};

}  // namespace penstock
