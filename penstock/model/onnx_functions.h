// SPDX-License-Identifier: Apache-2.0
//
// How large a model becomes when its local functions are put in the place of their calls. A few
// kilobytes in which each function calls the one before twice have more nodes than any machine
// holds, and the engine finds out while it loads.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock {

/// More nodes than any model has; the largest exports have some hundred thousand.
inline constexpr std::uint64_t kMaxOnnxNodes = 2'000'000;
inline constexpr int kMaxOnnxFunctionDepth = 256;

/// Texts lie in the file's bytes, which outlive this.
class OnnxFunctions {
 public:
  /// Domain and name of an operation.
  using Operation = std::pair<std::string_view, std::string_view>;

  /// What follows is a function's; before the first, it is the graph's.
  void begin_function();
  /// The function's own name, known only when it has been read.
  void end_function(const Operation& name);
  void count_node(const Operation& operation);

  /// What is wrong, if anything: functions that call themselves, call one another too deeply, or
  /// become too many nodes.
  std::optional<std::string> check() const;

 private:
  using Calls = std::map<Operation, std::uint64_t>;
  struct Size {
    std::uint64_t nodes = 0;
    bool is_known = false;  ///< Else it is being counted, or has not been.
    bool is_counting = false;
  };

  /// Nodes of a body with its calls expanded, at most kMaxOnnxNodes + 1.
  std::uint64_t expanded(const Calls& body, int depth, std::map<Operation, Size>& sizes,
                         std::optional<std::string>& problem) const;

  Calls graph_;
  Calls function_;  ///< The one that is being read.
  bool in_function_ = false;
  std::map<Operation, Calls> functions_;
};

}  // namespace penstock
