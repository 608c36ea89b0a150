// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/config_yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <exception>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/printable.h"
#include "penstock/base/str_format.h"

namespace penstock {
namespace {

/// Ends the parser's work; never leaves this file.
struct Refused : std::exception {};

TextPlace place_of(const YAML::Mark& mark) {
  return mark.is_null() ? TextPlace{1, 1} : TextPlace{mark.line + 1, mark.column + 1};
}

/// Builds the tree out of the parser's events, in which an alias is still one.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(ConfigProblems& problems) : problems_(problems) {}

  /// Of an empty text, nothing, which is at its begin.
  ConfigNode take() {
    if (root_.place == TextPlace{}) root_.place = {1, 1};
    return std::move(root_);
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) refuse(mark, "there is a second document; one is all that is read");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    begin(mark, "?", anchor);
    add(mark, ConfigNode{});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "aliases (*name) are not taken");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    begin(mark, tag, anchor);
    if (expects_key()) {
      open_.back().key = value;
      open_.back().key_place = place_of(mark);
      if (!open_.back().keys.insert(value).second) {
        add_problem(problems_, place_of(mark), "",
                    str_format("the key '{}' is told twice", printable(value.substr(0, 60))));
      }
      return;
    }
    ConfigNode node;
    node.kind = ConfigNode::Kind::kText;
    node.text = value;
    node.quoted = tag == "!";
    // `key: ~` and `key: null` are no texts.
    if (!node.quoted && (value == "~" || value == "null")) node.kind = ConfigNode::Kind::kNull;
    add(mark, std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, ConfigNode::Kind::kList);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, ConfigNode::Kind::kMap);
  }
  void OnMapEnd() override { close(); }

 private:
  /// A list or map whose end has not come.
  struct Open {
    ConfigNode node;
    std::optional<std::string> key;  ///< Of a map, whose value comes next.
    TextPlace key_place;
    std::set<std::string, std::less<>> keys;
  };

  [[noreturn]] void refuse(const YAML::Mark& mark, std::string what) {
    add_problem(problems_, place_of(mark), "", std::move(what));
    throw Refused();
  }
  bool expects_key() const {
    return !open_.empty() && open_.back().node.kind == ConfigNode::Kind::kMap &&
           !open_.back().key.has_value();
  }
  void begin(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (++nodes_ > kMaxConfigNodes) {
      refuse(mark, str_format("there are more than {} values", kMaxConfigNodes));
    }
    if (anchor != 0) refuse(mark, "anchors (&name) are not taken");
    if (!tag.empty() && tag != "?" && tag != "!") refuse(mark, "tags (!name) are not taken");
  }
  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            ConfigNode::Kind kind) {
    begin(mark, tag, anchor);
    if (expects_key()) refuse(mark, "a key must be text");
    if (open_.size() >= std::size_t{kMaxConfigDepth}) {
      refuse(mark, str_format("is nested more than {} deep", kMaxConfigDepth));
    }
    Open& opened = open_.emplace_back();
    opened.node.kind = kind;
    opened.node.place = place_of(mark);
  }
  void close() {
    ConfigNode node = std::move(open_.back().node);
    open_.pop_back();
    put(std::move(node));
  }
  void add(const YAML::Mark& mark, ConfigNode node) {
    if (expects_key()) refuse(mark, "a key must be text");
    node.place = place_of(mark);
    put(std::move(node));
  }
  void put(ConfigNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == ConfigNode::Kind::kList) {
      parent.node.items.push_back(std::move(node));
    } else if (parent.key) {
      parent.node.entries.push_back({std::move(*parent.key), parent.key_place, std::move(node)});
      parent.key.reset();
    }
  }

  ConfigProblems& problems_;
  ConfigNode root_;
  std::vector<Open> open_;
  std::size_t nodes_ = 0;
  int documents_ = 0;
};

}  // namespace

std::optional<ConfigNode> parse_yaml(std::string_view text, ConfigProblems& problems) {
  const std::size_t before = problems.size();
  if (text.size() > kMaxConfigBytes) {
    add_problem(problems, {}, "", str_format("is larger than {} bytes", kMaxConfigBytes));
    return std::nullopt;
  }
  TreeBuilder tree(problems);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(tree)) {
    }
  } catch (const Refused&) {
    return std::nullopt;
  } catch (const YAML::Exception& error) {
    add_problem(problems, place_of(error.mark), "", str_format("is not YAML: {}", error.msg));
    return std::nullopt;
  }
  if (problems.size() > before) return std::nullopt;
  return tree.take();
}

}  // namespace penstock
