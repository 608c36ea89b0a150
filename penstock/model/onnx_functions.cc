// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/onnx_functions.h"

#include <algorithm>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

OnnxFunctions::Operation with_one_domain(const OnnxFunctions::Operation& operation) {
  return {operation.first == "ai.onnx" ? std::string_view() : operation.first, operation.second};
}

}  // namespace

void OnnxFunctions::begin_function() {
  in_function_ = true;
  function_.clear();
}

void OnnxFunctions::end_function(const Operation& name, std::string_view overload) {
  in_function_ = false;
  Overloads& overloads = functions_[with_one_domain(name)];
  if (!overloads.emplace(overload, std::move(function_)).second && !twice_) {
    twice_ = str_format("function '{}' of domain '{}'{} is there twice", name.second, name.first,
                        overload.empty() ? "" : str_format(", overload '{}',", overload));
  }
  function_.clear();
}

void OnnxFunctions::count_node(const Operation& operation) {
  ++(in_function_ ? function_ : graph_)[with_one_domain(operation)];
}

OnnxFunctions::Size OnnxFunctions::expanded(const Calls& body, int depth,
                                            std::map<Operation, Size>& sizes,
                                            std::optional<std::string>& problem) const {
  Size all;
  for (const auto& [operation, count] : body) {
    std::uint64_t each = 1;
    if (const auto called = functions_.find(operation); called != functions_.end()) {
      const Size size = largest(operation, called->second, depth, sizes, problem);
      if (problem) return {};
      each = std::max<std::uint64_t>(size.nodes, 1);
      all.height = std::max(all.height, size.height);
    }
    // Neither product nor sum overflows: counts are below a file's size, sizes are bounded.
    all.nodes = std::min(all.nodes + std::min(count, kMaxOnnxNodes + 1) * each, kMaxOnnxNodes + 1);
  }
  return all;
}

OnnxFunctions::Size OnnxFunctions::largest(const Operation& name, const Overloads& overloads,
                                           int depth, std::map<Operation, Size>& sizes,
                                           std::optional<std::string>& problem) const {
  Size& size = sizes[name];
  if (size.is_counting) {
    problem = str_format("function '{}' calls itself{}", name.second,
                         overloads.size() > 1 ? ", or another overload of its name" : "");
    return {};
  }
  // Also where it is known: what calls it may be deep already.
  if (depth + std::max(size.height, 1) > kMaxOnnxFunctionDepth) {
    problem = str_format("functions call one another deeper than {}", kMaxOnnxFunctionDepth);
    return {};
  }
  if (size.is_known) return size;
  size.is_counting = true;
  for (const auto& [overload, body] : overloads) {
    const Size one = expanded(body, depth + 1, sizes, problem);
    if (problem) return {};
    size.nodes = std::max(size.nodes, one.nodes);
    size.height = std::max(size.height, one.height + 1);
  }
  size.is_counting = false;
  size.is_known = true;
  return size;
}

std::optional<std::string> OnnxFunctions::check() const {
  if (twice_) return twice_;
  std::optional<std::string> problem;
  std::map<Operation, Size> sizes;
  if (expanded(graph_, 0, sizes, problem).nodes > kMaxOnnxNodes && !problem) {
    problem = str_format("with its functions it has more than {} nodes", kMaxOnnxNodes);
  }
  return problem;
}

}  // namespace penstock
