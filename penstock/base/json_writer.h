// SPDX-License-Identifier: Apache-2.0
//
// JsonWriter builds a document for people to read: objects and lists with commas where they belong,
// two spaces a level. The caller closes what it opens.
//
//   JsonWriter out;
//   out.open('{');
//   out.key("name").string("nanodet");
//   out.close('}');
//   std::string text = out.take();
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "penstock/base/json_text.h"

namespace penstock {

class JsonWriter {
 public:
  JsonWriter& key(std::string_view name) {
    next();
    append_json_string(text_, name);
    text_ += ": ";
    after_key_ = true;
    return *this;
  }
  void string(std::string_view value) {
    next();
    append_json_string(text_, value);
  }
  template <typename T>
  void number(T value) {
    next();
    append_json_number(text_, value);
  }
  void boolean(bool value) {
    next();
    text_ += value ? "true" : "false";
  }
  void open(char bracket) {
    next();
    text_ += bracket;
    ++depth_;
    first_ = true;
  }
  void close(char bracket) {
    --depth_;
    if (!first_) new_line();
    text_ += bracket;
    first_ = false;
  }
  std::string take() { return std::move(text_) + "\n"; }

 private:
  void next() {
    if (std::exchange(after_key_, false)) return;
    if (depth_ == 0) return;
    if (!first_) text_ += ',';
    first_ = false;
    new_line();
  }
  void new_line() { text_ += "\n" + std::string(2 * depth_, ' '); }

  std::string text_;
  std::size_t depth_ = 0;
  bool first_ = true;
  bool after_key_ = false;
};

}  // namespace penstock
