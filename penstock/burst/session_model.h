// SPDX-License-Identifier: Apache-2.0
//
// SessionModel is a BurstModel whose bursts run a model::Session. While one of its bursts lives the
// model is hot (contract X01): it stays loaded, and the CPU is asked not to sleep deeply, where
// this process may ask. Without bursts it can be let go after a while, and is loaded again for the
// next one.
//
//   auto model = SessionModel::create([=] { return open_session(device, manifest, options); },
//                                     {.name = "nanodet"});
//
// Inputs that decide how much or where something is read (bool, integers of 32 and 64 bits, and
// whatever is smaller than kSnapshotBelow: scales, sizes, thresholds) are copied before they are
// used; all others are used where they lie. Outputs are copied to the client's memory when the run
// is over; both kinds of copy are in the ledger.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/base/error.h"
#include "penstock/base/unique_fd.h"
#include "penstock/burst/burst_metrics.h"
#include "penstock/burst/burst_model.h"
#include "penstock/burst/mapped_memory.h"
#include "penstock/memory/device.h"
#include "penstock/model/session.h"

namespace penstock {

inline constexpr std::size_t kSnapshotBelow = 4096;

struct SessionModelOptions {
  std::string name{};           ///< For messages.
  std::string artefact_hash{};  ///< See BurstModel.
  /// Without a burst for so long it is let go of (let_go_if_idle); 0: never.
  Nanoseconds idle_limit{0};
  Nanoseconds execution_limit = std::chrono::seconds(60);
  BurstQuota::Limits quota{};                         ///< Of one burst.
  std::shared_ptr<BurstQuota> total_quota = nullptr;  ///< Of all of them.
  std::shared_ptr<BurstMetrics> metrics = nullptr;
  /// Where the latency that the CPU may have is asked for; a file that can't be written is nothing.
  std::filesystem::path latency_file = "/dev/cpu_dma_latency";
  Clock* clock = &Clock::system();
};

class SessionModel final : public BurstModel, public std::enable_shared_from_this<SessionModel> {
 public:
  using Opener = std::function<Result<std::shared_ptr<Session>>()>;

  /// Opens the session once, to know the model. `device` holds what is copied.
  static Result<std::shared_ptr<SessionModel>> create(DevicePtr device, Opener opener,
                                                      SessionModelOptions options);

  const std::vector<TensorSpec>& inputs() const override { return inputs_; }
  const std::vector<TensorSpec>& outputs() const override { return outputs_; }
  const std::string& artefact_hash() const override { return options_.artefact_hash; }
  /// kDeviceUnavailable when the model can't be loaded again, or is another one now.
  ConfiguredBurst configure_burst(BurstConfiguration configuration) override;

  /// Makes executions in flight and all later ones fail. For who stops.
  void interrupt();

  const std::string& name() const { return options_.name; }
  bool is_loaded() const;
  /// Bursts that keep it hot.
  int holds() const;
  /// Whether the CPU's latency is asked for.
  bool asks_for_latency() const;
  /// For who looks round now and then; whether it was.
  bool let_go_if_idle();

 private:
  class Hold;

  SessionModel(DevicePtr device, Opener opener, SessionModelOptions options,
               std::shared_ptr<Session> session);
  Result<std::shared_ptr<Session>> hold();
  void release();

  const DevicePtr device_;
  const Opener opener_;
  const SessionModelOptions options_;
  const std::vector<TensorSpec> inputs_;
  const std::vector<TensorSpec> outputs_;

  mutable std::mutex mutex_;
  std::shared_ptr<Session> session_;
  int holds_ = 0;
  TimePoint idle_since_;
  UniqueFd latency_;
};

}  // namespace penstock
