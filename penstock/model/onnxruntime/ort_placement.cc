// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/onnxruntime/ort_placement.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "penstock/base/printable.h"
#include "penstock/base/str_format.h"
#include "penstock/model/manifest.h"

namespace penstock {
namespace {

/// The function of ONNX Runtime that writes the placement, and nothing else at this level.
constexpr std::string_view kWriter = "VerifyEachNodeIsAssignedToAnEp";
constexpr std::string_view kStart = "Node placements";
/// When there is one provider: its nodes are counted, not listed.
constexpr std::string_view kAll = " All nodes placed on [";
constexpr std::string_view kSome = " Node(s) placed on [";
constexpr std::string_view kCount = "]. Number of nodes: ";
constexpr std::string_view kNode = "  ";

/// A session has two, the chosen one and the CPU's.
constexpr std::size_t kMostGroups = 8;
/// More can't be named by a manifest anyway.
constexpr std::size_t kMostCpuNodes = kMaxCpuNodes + 1;
constexpr std::size_t kLongestNode = 1024;
constexpr std::size_t kNamed = 8;  ///< Nodes that an error names.

std::optional<std::size_t> number(std::string_view digits) {
  std::size_t value = 0;
  const char* const begin = digits.data();
  const char* const end = begin + digits.size();
  const auto [rest, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

/// The name in "operator (name)".
std::string_view name_in(std::string_view node) {
  const std::size_t open = node.find(" (");
  return node.substr(open + 2, node.size() - open - 3);
}

std::string shown(std::string_view node) {
  const std::string_view name = name_in(node);
  if (!name.empty()) return "'" + printable(name) + "'";
  return printable(node.substr(0, node.find(" ("))) + " without a name";
}

}  // namespace

Result<void> OrtPlacement::listen(const OrtRuntime& runtime, OrtSessionOptions* options) {
  const OrtApi& api = runtime.api();
  PENSTOCK_TRY(runtime.check(api.SetUserLoggingFunction(options, receive, this),
                             "listening to where nodes are placed"));
  return runtime.check(api.SetSessionLogSeverityLevel(options, ORT_LOGGING_LEVEL_VERBOSE),
                       "listening to where nodes are placed");
}

void ORT_API_CALL OrtPlacement::receive(void* self, OrtLoggingLevel severity, const char* category,
                                        const char* logid, const char* location,
                                        const char* message) {
  if (severity == ORT_LOGGING_LEVEL_VERBOSE) {
    static_cast<OrtPlacement*>(self)->read(location, message);
  } else if (severity >= ORT_LOGGING_LEVEL_ERROR) {
    forward_ort_log(nullptr, severity, category, logid, location, message);
  }
}

void OrtPlacement::read(std::string_view location, std::string_view message) {
  if (!location.contains(kWriter)) return;
  const std::lock_guard lock(mutex_);
  if (state_ == State::kUnreadable || state_ == State::kDone) return;
  bool understood = false;
  if (state_ == State::kBefore) {
    understood = message == kStart;
    state_ = State::kGroups;
  } else if (state_ == State::kGroups) {
    understood = nodes_left_ > 0 ? read_node(message) : read_group(message);
  }
  if (understood) return;
  state_ = State::kUnreadable;
  unreadable_ = message.substr(0, kLongestNode);
}

bool OrtPlacement::read_group(std::string_view message) {
  const bool lists = message.starts_with(kSome);
  if (!lists && !message.starts_with(kAll)) return false;
  const std::string_view rest = message.substr(lists ? kSome.size() : kAll.size());
  const std::size_t end = rest.find(kCount);
  if (end == rest.npos || groups_.size() == kMostGroups) return false;
  const std::string_view provider = rest.substr(0, end);
  const auto nodes = number(rest.substr(end + kCount.size()));
  if (!nodes || std::ranges::contains(groups_, provider, &Group::provider)) return false;
  if (!lists && !groups_.empty()) return false;
  groups_.push_back({std::string(provider), *nodes});
  if (lists) {
    nodes_left_ = *nodes;
  } else {
    state_ = State::kAll;
  }
  return true;
}

bool OrtPlacement::read_node(std::string_view message) {
  if (!message.starts_with(kNode)) return false;
  --nodes_left_;
  if (groups_.back().provider != kCpuProvider) return true;
  const std::string_view node = message.substr(kNode.size());
  if (!node.contains(" (") || !node.ends_with(')') || node.size() > kLongestNode) return false;
  if (cpu_nodes_.size() < kMostCpuNodes) cpu_nodes_.emplace_back(node);
  return true;
}

Result<void> OrtPlacement::check_readable() const {
  const auto refuse = [](const std::string& why) {
    return fail(ErrorKind::kUnsupported,
                str_format("cannot tell which nodes are left on the CPU: {}", why));
  };
  if (state_ == State::kUnreadable) {
    return refuse(
        str_format("ONNX Runtime's list of node placements has '{}'", printable(unreadable_)));
  }
  if (groups_.empty()) return refuse("this ONNX Runtime writes no list of node placements");
  if (nodes_left_ > 0) {
    return refuse(
        str_format("ONNX Runtime's list of node placements ends {} nodes too early", nodes_left_));
  }
  return {};
}

Result<void> OrtPlacement::check(std::string_view provider,
                                 std::span<const std::string> cpu_nodes) {
  const std::lock_guard lock(mutex_);
  PENSTOCK_TRY(check_readable());
  state_ = State::kDone;
  std::size_t all = 0;
  for (const Group& group : groups_) {
    all += group.nodes;
    if (group.provider == provider || group.provider == kCpuProvider) continue;
    return fail(ErrorKind::kUnsupported,
                str_format("{} nodes are placed on {}, which was not chosen", group.nodes,
                           printable(group.provider)));
  }
  if (!std::ranges::contains(groups_, provider, &Group::provider)) {
    return fail(ErrorKind::kUnsupported,
                str_format("{} takes none of the model's {} nodes; what runs on the CPU has the "
                           "provider {}",
                           provider, all, kCpuProvider));
  }
  const auto on_cpu = std::ranges::find(groups_, kCpuProvider, &Group::provider);
  return on_cpu == groups_.end() ? Result<void>() : check_names(*on_cpu, cpu_nodes);
}

Result<void> OrtPlacement::check_names(const Group& on_cpu,
                                       std::span<const std::string> cpu_nodes) const {
  if (on_cpu.nodes > kMaxCpuNodes) {
    return fail(ErrorKind::kUnsupported, str_format("{} nodes are left on the CPU, more than {}",
                                                    on_cpu.nodes, kMaxCpuNodes));
  }
  const std::set<std::string_view> allowed(cpu_nodes.begin(), cpu_nodes.end());
  std::vector<std::string> refused;
  for (const std::string& node : cpu_nodes_) {
    const std::string_view name = name_in(node);
    if (name.empty() || !allowed.contains(name)) refused.push_back(shown(node));
  }
  if (refused.empty()) return {};
  std::string names;
  for (std::size_t i = 0; i < std::min(refused.size(), kNamed); ++i) {
    names += (i == 0 ? "" : ", ") + refused[i];
  }
  if (refused.size() > kNamed) names += str_format(" and {} more", refused.size() - kNamed);
  return fail(
      ErrorKind::kUnsupported,
      str_format("left on the CPU, which the manifest's engine.cpu_nodes does not allow: {}; "
                 "`penstock model prepare --cpu-node NAME` allows a node that has a name",
                 names));
}

}  // namespace penstock
