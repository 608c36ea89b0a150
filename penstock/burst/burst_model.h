// SPDX-License-Identifier: Apache-2.0
//
// The three interfaces of a burst (contract X04), alike on both sides of the socket: a BurstModel
// configures bursts, whose BurstContext the client holds and whose BurstCallback the client gives.
// A server implements BurstModel with BurstServer or with a context of its own; RemoteModel
// implements it by asking another process; BurstClient works on either.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/base/deadline.h"
#include "penstock/base/error.h"
#include "penstock/burst/burst_memory.h"
#include "penstock/burst/burst_types.h"
#include "penstock/burst/lifeline.h"
#include "penstock/burst/queue_descriptor.h"
#include "penstock/memory/tensor.h"

namespace penstock {

/// What the client does for the service. Thread-safe; called from the service's thread while an
/// execution waits for it, so it must not start one.
class BurstCallback {
 public:
  virtual ~BurstCallback() = default;

  struct Memories {
    /// kNone with one memory a slot, in order; else none: kInvalidArgument for a slot that is not
    /// in use, kGeneralFailure.
    ErrorStatus status = ErrorStatus::kGeneralFailure;
    std::vector<BurstMemory> memories;
  };
  virtual Memories get_memories(std::span<const std::int32_t> slots, Deadline deadline) = 0;
};

/// What the service does for the client, besides executing. Thread-safe. Its last owner is the
/// client; when that lets go, all that the burst holds in the service goes: threads, mappings, the
/// hold on the model. The destructor waits for an execution in flight.
class BurstContext {
 public:
  virtual ~BurstContext() = default;

  /// Forgets what is cached for a slot, once no execution uses it. Unknown slots are nothing.
  virtual void free_memory(std::int32_t slot) = 0;

  /// The direct path (contract X05): as if the request had come through the queue, but its length
  /// has no limit but kMaxDirectDatums. Refused (kGeneralFailure) while the queue's request runs.
  virtual BurstResult execute(const BurstRequest& request, Deadline deadline) = 0;
};

/// Of the longest request and result of the direct path: 1 MiB and a half.
inline constexpr std::size_t kMaxDirectDatums = std::size_t{1} << 16;

/// Both queues hold exactly kBurstChannelLength datums, have an event flag, are empty, and were
/// created by the client, who settles them when configure_burst has returned kNone.
struct BurstConfiguration {
  std::shared_ptr<BurstCallback> callback;
  QueueDescriptor requests;
  QueueDescriptor results;
  /// The client's queue ends hang on it: the model cuts it when no result can come any more
  /// (the other process is gone, the service has ended the burst). Never null.
  std::shared_ptr<Lifeline> client_lifeline;
  /// The service's queue ends hang on it: cut by who knows that the client is gone. Null: the
  /// service makes its own.
  std::shared_ptr<Lifeline> service_lifeline;
  /// How long the service polls for a request before it sleeps (contract X06); at most
  /// kMaxPollWindow, more is cut to that.
  Nanoseconds poll_window{0};
  /// One execution may take so long; 0: as the service has it.
  Nanoseconds execution_limit{0};
};
inline constexpr Nanoseconds kMaxPollWindow = Milliseconds(2);

struct ConfiguredBurst {
  /// kNone, kDeviceUnavailable, kGeneralFailure, kInvalidArgument, kResourceExhaustedTransient.
  ErrorStatus status = ErrorStatus::kGeneralFailure;
  std::unique_ptr<BurstContext> context;  ///< Null unless kNone.
  std::string message;                    ///< Of a refusal, for people.
};

/// A prepared model that can be executed in bursts. Thread-safe.
class BurstModel {
 public:
  virtual ~BurstModel() = default;

  /// In the order in which requests name their arguments.
  virtual const std::vector<TensorSpec>& inputs() const = 0;
  virtual const std::vector<TensorSpec>& outputs() const = 0;
  /// SHA-256 of the model's file in hex digits, empty where there is none: who prepared data for
  /// one model notices that another is served.
  virtual const std::string& artefact_hash() const = 0;

  /// Attaches the queues' other ends before it returns. The model must outlive its bursts.
  virtual ConfiguredBurst configure_burst(BurstConfiguration configuration) = 0;
};

}  // namespace penstock
