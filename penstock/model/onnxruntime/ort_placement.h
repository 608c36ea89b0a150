// SPDX-License-Identifier: Apache-2.0
//
// OrtPlacement: which of a model's nodes run on which execution provider, and the refusal of those
// that nobody allowed on the CPU (contract M05).
//
//   OrtPlacement placement;                                  // outlives the session
//   PENSTOCK_TRY(placement.listen(runtime, session_options));
//   ... create the session ...
//   PENSTOCK_TRY(placement.check("CUDAExecutionProvider", manifest.cpu_nodes));
//
// The C API of ONNX Runtime 1.23 has no question for it. While it loads a model it writes the
// placement of every node, those of branches and loops too, into the session's log. That is text,
// so it is read strictly: each provider's number of nodes must be followed by as many nodes, and
// what is not as expected is an error, never a guess.
#pragma once

#include <onnxruntime_c_api.h>

#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/model/onnxruntime/ort_runtime.h"

namespace penstock {

/// Thread-safe.
class OrtPlacement {
 public:
  OrtPlacement() = default;
  OrtPlacement(const OrtPlacement&) = delete;
  OrtPlacement& operator=(const OrtPlacement&) = delete;

  /// A session made with `options` reports here and to the log, as long as it lives.
  Result<void> listen(const OrtRuntime& runtime, OrtSessionOptions* options);

  /// One verbose message of the session's log; `location` is where in ONNX Runtime it comes from.
  void read(std::string_view location, std::string_view message);

  /// After the session was made; what is logged from now on is not looked at. kUnsupported: the
  /// placement can't be read, `provider` takes no node at all, or nodes are on the CPU that
  /// `cpu_nodes` does not name. The message names them.
  Result<void> check(std::string_view provider, std::span<const std::string> cpu_nodes);

 private:
  struct Group {
    std::string provider;
    std::size_t nodes = 0;
  };
  /// kAll: one provider has all nodes, and nothing follows.
  enum class State { kBefore, kGroups, kAll, kUnreadable, kDone };

  static void ORT_API_CALL receive(void* self, OrtLoggingLevel severity, const char* category,
                                   const char* logid, const char* location, const char* message);
  bool read_group(std::string_view message);
  bool read_node(std::string_view message);
  Result<void> check_readable() const;
  Result<void> check_names(const Group& on_cpu, std::span<const std::string> cpu_nodes) const;

  std::mutex mutex_;
  State state_ = State::kBefore;
  std::vector<Group> groups_;
  std::size_t nodes_left_ = 0;  ///< Of the last group.
  /// The CPU's, as "operator (name)", at most kMostCpuNodes.
  std::vector<std::string> cpu_nodes_;
  std::string unreadable_;  ///< The message that was not understood, shortened.
};

}  // namespace penstock
