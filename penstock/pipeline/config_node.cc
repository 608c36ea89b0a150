// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/config_node.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <utility>

#include "penstock/base/printable.h"
#include "penstock/base/str_format.h"

namespace penstock {
namespace {

std::string_view name_of(ConfigNode::Kind kind) {
  switch (kind) {
    case ConfigNode::Kind::kNull:
      return "nothing";
    case ConfigNode::Kind::kText:
      return "text";
    case ConfigNode::Kind::kList:
      return "a list";
    case ConfigNode::Kind::kMap:
      return "a map";
  }
  return "";
}

/// What a message shows of a value that may be a megabyte.
std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 60;
  if (text.size() <= kMost) return printable(text);
  return printable(text.substr(0, kMost)) + "...";
}

template <typename T>
std::optional<T> parse(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Nanoseconds> parse_duration(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {{"ms", 1e6}, {"min", 60e9}, {"s", 1e9}};
  for (const auto& [unit, nanoseconds] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const auto number = parse<double>(text.substr(0, text.size() - unit.size()));
    // Not beyond what 64 bits of nanoseconds hold.
    if (!number || !std::isfinite(*number) || std::abs(*number) > 1e8) return std::nullopt;
    return Nanoseconds(std::llround(*number * nanoseconds));
  }
  return std::nullopt;
}

std::string shown(Nanoseconds value) {
  const double seconds = std::chrono::duration<double>(value).count();
  return seconds >= 1 || seconds == 0 ? str_format("{:g}s", seconds)
                                      : str_format("{:g}ms", seconds * 1e3);
}

}  // namespace

void add_problem(ConfigProblems& problems, TextPlace place, std::string where, std::string what) {
  if (problems.size() >= kMaxConfigProblems) return;
  // What others say of a value repeats it, a megabyte long or not.
  for (std::string* text : {&where, &what}) {
    if (text->size() > kMaxProblemText) text->replace(kMaxProblemText, std::string::npos, "...");
  }
  problems.push_back({place, std::move(where), std::move(what)});
}

std::string to_string(const ConfigProblem& problem, std::string_view file) {
  std::string out;
  if (problem.place.line > 0) {
    out = str_format("{}:{}:{}: ", file, problem.place.line, problem.place.column);
  } else if (!file.empty()) {
    out = str_format("{}: ", file);
  }
  if (!problem.where.empty()) out += problem.where + ": ";
  return out + problem.what;
}

ConfigMap::ConfigMap(const ConfigNode& node, std::string path, ConfigProblems& problems)
    : node_(node), path_(std::move(path)), problems_(problems) {
  if (node.kind == ConfigNode::Kind::kMap) return;
  add_problem(problems_, node.place, path_, str_format("must be a map, is {}", name_of(node.kind)));
}

const ConfigEntry* ConfigMap::find(std::string_view key) const {
  const auto found = std::ranges::find(node_.entries, key, &ConfigEntry::name);
  return found == node_.entries.end() ? nullptr : &*found;
}

const ConfigNode* ConfigMap::node(std::string_view key) {
  if (std::ranges::find(known_, key) == known_.end()) known_.emplace_back(key);
  const ConfigEntry* entry = find(key);
  return entry == nullptr ? nullptr : &entry->value;
}

std::string ConfigMap::path(std::string_view key) const {
  return path_.empty() ? std::string(key) : str_format("{}.{}", path_, key);
}

TextPlace ConfigMap::place(std::string_view key) const {
  const ConfigEntry* entry = find(key);
  return entry == nullptr ? node_.place : entry->value.place;
}

void ConfigMap::problem(std::string_view key, std::string what) {
  add_problem(problems_, place(key), path(key), std::move(what));
}

const ConfigNode* ConfigMap::scalar(std::string_view key, std::string_view wanted, bool plain) {
  const ConfigNode* value = node(key);
  if (value == nullptr) return nullptr;
  if (value->kind != ConfigNode::Kind::kText) {
    problem(key, str_format("must be {}, is {}", wanted, name_of(value->kind)));
    return nullptr;
  }
  if (plain && value->quoted) {
    problem(key, str_format("must be {}, is text in quotes", wanted));
    return nullptr;
  }
  return value;
}

std::optional<std::string> ConfigMap::text(std::string_view key) {
  const ConfigNode* value = scalar(key, "text", false);
  if (value == nullptr) return std::nullopt;
  if (value->text.empty()) {
    problem(key, "is empty");
    return std::nullopt;
  }
  // A path or an address ends at one, whatever follows it here.
  if (value->text.find('\0') != std::string::npos) {
    problem(key, "holds a NUL character");
    return std::nullopt;
  }
  return value->text;
}

std::optional<bool> ConfigMap::boolean(std::string_view key) {
  const ConfigNode* value = scalar(key, "true or false", true);
  if (value == nullptr) return std::nullopt;
  if (value->text == "true") return true;
  if (value->text == "false") return false;
  problem(key, str_format("must be true or false, is '{}'", shown(value->text)));
  return std::nullopt;
}

std::optional<double> ConfigMap::number(std::string_view key, double least, double most) {
  const std::string wanted = str_format("a number from {:g} to {:g}", least, most);
  const ConfigNode* value = scalar(key, wanted, true);
  if (value == nullptr) return std::nullopt;
  const auto number = parse<double>(value->text);
  if (number && *number >= least && *number <= most) return number;
  problem(key, str_format("must be {}, is '{}'", wanted, shown(value->text)));
  return std::nullopt;
}

std::optional<std::int64_t> ConfigMap::integer(std::string_view key, std::int64_t least,
                                               std::int64_t most) {
  const std::string wanted = str_format("a whole number from {} to {}", least, most);
  const ConfigNode* value = scalar(key, wanted, true);
  if (value == nullptr) return std::nullopt;
  const auto number = parse<std::int64_t>(value->text);
  if (number && *number >= least && *number <= most) return number;
  problem(key, str_format("must be {}, is '{}'", wanted, shown(value->text)));
  return std::nullopt;
}

std::optional<Nanoseconds> ConfigMap::duration(std::string_view key, Nanoseconds least,
                                               Nanoseconds most) {
  const std::string wanted =
      str_format("a duration from {} to {}, as 500ms, 2s or 1min", shown(least), shown(most));
  const ConfigNode* value = scalar(key, wanted, true);
  if (value == nullptr) return std::nullopt;
  const auto duration = parse_duration(value->text);
  if (duration && *duration >= least && *duration <= most) return duration;
  problem(key, str_format("must be {}, is '{}'", wanted, shown(value->text)));
  return std::nullopt;
}

std::optional<std::string> ConfigMap::choice(std::string_view key,
                                             const std::vector<std::string_view>& choices) {
  std::string wanted;
  for (std::string_view choice : choices) {
    if (!wanted.empty()) wanted += choice == choices.back() ? " or " : ", ";
    wanted += choice;
  }
  const ConfigNode* value = scalar(key, wanted, false);
  if (value == nullptr) return std::nullopt;
  if (std::ranges::find(choices, value->text) != choices.end()) return value->text;
  problem(key, str_format("must be {}, is '{}'", wanted, shown(value->text)));
  return std::nullopt;
}

const std::vector<ConfigNode>& ConfigMap::list(std::string_view key) {
  static const std::vector<ConfigNode> kNone;
  const ConfigNode* value = node(key);
  if (value == nullptr) return kNone;
  if (value->kind == ConfigNode::Kind::kList) return value->items;
  problem(key, str_format("must be a list, is {}", name_of(value->kind)));
  return kNone;
}

void ConfigMap::finish() {
  std::string known;
  for (const std::string& name : known_) known += (known.empty() ? "" : ", ") + name;
  for (const ConfigEntry& entry : node_.entries) {
    if (std::ranges::find(known_, entry.name) != known_.end()) continue;
    add_problem(problems_, entry.place, path(shown(entry.name)),
                str_format("there is no such key; there are {}", known));
  }
}

}  // namespace penstock
