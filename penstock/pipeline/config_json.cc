// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/config_json.h"

#include <simdjson.h>

#include <algorithm>
#include <string>
#include <utility>

#include "penstock/base/printable.h"
#include "penstock/base/str_format.h"
#include "penstock/pipeline/config_yaml.h"

namespace penstock {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

/// `problem` says what is wrong when nothing comes back.
class Reader {
 public:
  std::optional<ConfigNode> read(element value) {
    if (++nodes_ > kMaxConfigNodes) {
      return refuse(str_format("there are more than {} values", kMaxConfigNodes));
    }
    ConfigNode node;
    switch (value.type()) {
      case element_type::ARRAY:
        return read_list(value.get_array().value_unsafe());
      case element_type::OBJECT:
        return read_map(value.get_object().value_unsafe());
      case element_type::NULL_VALUE:
        return node;
      case element_type::STRING:
        node.text = std::string(value.get_string().value_unsafe());
        node.quoted = true;
        break;
      default:
        // Numbers and booleans as they are written.
        node.text = simdjson::to_string(value);
        break;
    }
    node.kind = ConfigNode::Kind::kText;
    return node;
  }
  std::string take_problem() { return std::move(problem_); }

 private:
  std::optional<ConfigNode> refuse(std::string what) {
    problem_ = std::move(what);
    return std::nullopt;
  }
  std::optional<ConfigNode> read_list(simdjson::dom::array list) {
    ConfigNode node;
    node.kind = ConfigNode::Kind::kList;
    for (element item : list) {
      auto child = read(item);
      if (!child) return std::nullopt;
      node.items.push_back(std::move(*child));
    }
    return node;
  }
  std::optional<ConfigNode> read_map(simdjson::dom::object map) {
    ConfigNode node;
    node.kind = ConfigNode::Kind::kMap;
    for (const auto field : map) {
      const std::string name(field.key);
      if (std::ranges::find(node.entries, name, &ConfigEntry::name) != node.entries.end()) {
        return refuse(str_format("the key '{}' is told twice", printable(name.substr(0, 60))));
      }
      // A map of thousands of keys would take its square in time.
      if (node.entries.size() >= kMostKeys) {
        return refuse(str_format("a map has more than {} keys", kMostKeys));
      }
      auto child = read(field.value);
      if (!child) return std::nullopt;
      node.entries.push_back({name, {}, std::move(*child)});
    }
    return node;
  }

  static constexpr std::size_t kMostKeys = 100;
  std::size_t nodes_ = 0;
  std::string problem_;
};

}  // namespace

std::optional<ConfigNode> parse_json(std::string_view text, ConfigProblems& problems) {
  const auto refuse = [&problems](std::string what) {
    add_problem(problems, {}, "", std::move(what));
    return std::nullopt;
  };
  if (text.size() > kMaxConfigBytes) {
    return refuse(str_format("is larger than {} bytes", kMaxConfigBytes));
  }
  simdjson::dom::parser parser(kMaxConfigBytes + 1);
  if (parser.allocate(text.size() + 1, std::size_t{kMaxConfigDepth}) != simdjson::SUCCESS) {
    return refuse("there is no memory left to read it");
  }
  element root;
  if (const auto error = parser.parse(text.data(), text.size()).get(root);
      error != simdjson::SUCCESS) {
    return refuse(str_format("is not JSON: {}", simdjson::error_message(error)));
  }
  Reader reader;
  auto node = reader.read(root);
  if (!node) return refuse(reader.take_problem());
  return node;
}

}  // namespace penstock
