// SPDX-License-Identifier: Apache-2.0
//
// BurstServer serves one burst: it owns the other ends of the client's two queues and one thread
// that takes requests, fetches memories that it does not know yet, executes, and answers
// (contract X02-X06).
//
//   BurstConfiguration configuration = ...;   // as a BurstModel gets it
//   return BurstServer::create(std::move(configuration), std::make_unique<MyExecutor>());
//
// Who wants no cache of memories implements SynchronousModel instead, which is given them with
// every request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "penstock/base/clock.h"
#include "penstock/burst/burst_executor.h"
#include "penstock/burst/burst_metrics.h"
#include "penstock/burst/burst_model.h"

namespace penstock {

struct BurstServerOptions {
  /// Of an execution whose configuration says nothing.
  Nanoseconds execution_limit = std::chrono::seconds(60);
  /// For fetching memories of one request.
  Nanoseconds memory_limit = std::chrono::seconds(1);
  std::shared_ptr<BurstMetrics> metrics = nullptr;
  const Clock* clock = &Clock::system();  ///< Outlives the burst.
};

/// A prepared model as its synchronous execution.
class SynchronousModel {
 public:
  virtual ~SynchronousModel() = default;
  /// `pools` has the memories of `request.slots`, in that order. See BurstExecutor::execute.
  virtual BurstResult execute(const BurstRequest& request,
                              std::span<const BurstMemory* const> pools, Deadline deadline) = 0;
};

class BurstServer final : public BurstContext {
 public:
  /// Of one burst at a time, whatever the executor would take: kResourceExhaustedTransient.
  static constexpr std::size_t kMaxSlots = 1024;

  /// kInvalidArgument for queues that are not a burst's or have been used, or where something is
  /// missing; kResourceExhaustedTransient when there is no thread or memory.
  static ConfiguredBurst create(BurstConfiguration configuration,
                                std::unique_ptr<BurstExecutor> executor,
                                const BurstServerOptions& options = {});
  static ConfiguredBurst create(BurstConfiguration configuration,
                                std::shared_ptr<SynchronousModel> model,
                                const BurstServerOptions& options = {});

  /// Ends the burst and waits for its execution. From within that execution it does not wait, and
  /// what the burst holds goes when it ends.
  ~BurstServer() override;

  void free_memory(std::int32_t slot) override;
  BurstResult execute(const BurstRequest& request, Deadline deadline) override;

 private:
  class Burst;
  explicit BurstServer(std::shared_ptr<Burst> burst);
  const std::shared_ptr<Burst> burst_;
};

}  // namespace penstock
