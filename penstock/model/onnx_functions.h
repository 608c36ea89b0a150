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

/// A function is named by domain, name and overload (ONNX IR). Engines that know no overloads take
/// whichever has the name, so a call counts as the largest of them. Texts lie in the file's bytes,
/// which outlive this.
class OnnxFunctions {
 public:
  /// Domain and name of an operation. "ai.onnx" is the default domain's other name.
  using Operation = std::pair<std::string_view, std::string_view>;

  /// What follows is a function's; before the first, it is the graph's.
  void begin_function();
  /// The function's own name, known only when it has been read.
  void end_function(const Operation& name, std::string_view overload);
  void count_node(const Operation& operation);

  /// What is wrong, if anything: functions that are there twice, call themselves or another
  /// overload of theirs, call one another too deeply, or become too many nodes.
  std::optional<std::string> check() const;

 private:
  using Calls = std::map<Operation, std::uint64_t>;
  using Overloads = std::map<std::string_view, Calls>;
  struct Size {
    std::uint64_t nodes = 0;
    int height = 0;         ///< Calls below one another: a body that calls no function has 0.
    bool is_known = false;  ///< Else it is being counted, or has not been.
    bool is_counting = false;
  };

  /// Nodes of a body with its calls expanded, at most kMaxOnnxNodes + 1, and how deep they are.
  Size expanded(const Calls& body, int depth, std::map<Operation, Size>& sizes,
                std::optional<std::string>& problem) const;
  /// Those of the largest overload.
  Size largest(const Operation& name, const Overloads& overloads, int depth,
               std::map<Operation, Size>& sizes, std::optional<std::string>& problem) const;

  Calls graph_;
  Calls function_;  ///< The one that is being read.
  bool in_function_ = false;
  std::map<Operation, Overloads> functions_;
  std::optional<std::string> twice_;
};

}  // namespace penstock
