// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/onnx_functions.h"

#include <algorithm>

#include "penstock/base/str_format.h"

namespace penstock {

void OnnxFunctions::begin_function() {
  in_function_ = true;
  function_.clear();
}

void OnnxFunctions::end_function(const Operation& name) {
  in_function_ = false;
  functions_.insert_or_assign(name, std::move(function_));
  function_.clear();
}

void OnnxFunctions::count_node(const Operation& operation) {
  ++(in_function_ ? function_ : graph_)[operation];
}

std::uint64_t OnnxFunctions::expanded(const Calls& body, int depth,
                                      std::map<Operation, Size>& sizes,
                                      std::optional<std::string>& problem) const {
  if (depth > kMaxOnnxFunctionDepth) {
    problem = str_format("functions call one another deeper than {}", kMaxOnnxFunctionDepth);
    return 0;
  }
  std::uint64_t nodes = 0;
  for (const auto& [operation, count] : body) {
    std::uint64_t each = 1;
    if (const auto called = functions_.find(operation); called != functions_.end()) {
      Size& size = sizes[operation];
      if (size.is_counting) {
        problem = str_format("function '{}' calls itself", operation.second);
        return 0;
      }
      if (!size.is_known) {
        size.is_counting = true;
        size.nodes = expanded(called->second, depth + 1, sizes, problem);
        if (problem) return 0;
        size.is_counting = false;
        size.is_known = true;
      }
      each = std::max<std::uint64_t>(size.nodes, 1);
    }
    // Neither product nor sum overflows: counts are below a file's size, sizes are bounded.
    nodes = std::min(nodes + std::min(count, kMaxOnnxNodes + 1) * each, kMaxOnnxNodes + 1);
  }
  return nodes;
}

std::optional<std::string> OnnxFunctions::check() const {
  std::optional<std::string> problem;
  std::map<Operation, Size> sizes;
  if (expanded(graph_, 0, sizes, problem) > kMaxOnnxNodes && !problem) {
    problem = str_format("with its functions it has more than {} nodes", kMaxOnnxNodes);
  }
  return problem;
}

}  // namespace penstock
