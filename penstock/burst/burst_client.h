// SPDX-License-Identifier: Apache-2.0
//
// BurstClient is the client's end of one burst: two queues, the slots of the memories that it has
// shown the service, and one execution at a time.
//
//   auto client = BurstClient::create(model);
//   auto image = SharedFile::create(bytes, MapAccess::kRead);
//   auto scores = SharedFile::create(4000, MapAccess::kReadWrite);
//   auto done = (*client)->execute({.inputs = {{.memory = *image, .length = bytes}},
//                                   .outputs = {{.memory = *scores, .length = 4000}},
//                                   .deadline = Deadline::after(Clock::system(), seconds(1))});
//
// Memory crosses once: a file gets a number (slot) when it is first used, which is never given to
// another one, and the service is told when the file goes. Whoever holds the client may let go of
// files and client in any order. Thread-safe, but a second execution at a time is refused as busy.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/base/deadline.h"
#include "penstock/base/error.h"
#include "penstock/burst/burst_model.h"
#include "penstock/burst/burst_types.h"
#include "penstock/burst/poll_budget.h"
#include "penstock/memory/shared_file.h"

namespace penstock {

/// Why there is no result. What was sent never runs again by itself.
enum class BurstFault {
  kBusy,     ///< Another execution is running, or a late one has not come back.
  kInvalid,  ///< The execution can't be said: no deadline, a place outside its file, ...
  kTooLong,  ///< It does not fit into the queue, and the direct path is not allowed.
  kLate,     ///< The deadline passed. The service may still be at it, and write to its outputs.
  kGone,     ///< The service is gone. If the execution was sent, its outcome is not known.
  kCorrupt,  ///< The service broke the protocol; the burst is over.
};

struct BurstFailure {
  BurstFault fault;
  bool was_sent = false;
  std::string message;
};

class BurstClient {
 public:
  struct Options {
    Nanoseconds poll_window{0};          ///< For results; see PollBudget.
    Nanoseconds service_poll_window{0};  ///< The same for the service's side.
    Nanoseconds execution_limit{0};      ///< Asked of the service; 0: its own.
    const Clock* clock = &Clock::system();
  };

  struct Argument {
    std::shared_ptr<SharedFile> memory = nullptr;  ///< Null: it has no value.
    std::uint32_t offset = 0;
    std::uint32_t length = 0;
    std::vector<std::uint32_t> dimensions{};  ///< Empty: as the model says.
  };
  struct Execution {
    std::vector<Argument> inputs;
    std::vector<Argument> outputs;  ///< In files with MapAccess::kReadWrite.
    MeasureTiming measure = MeasureTiming::kOff;
    Deadline deadline = Deadline::never();  ///< Has to be set.
    /// A request or result that no queue holds may go by the socket. It costs some system calls.
    bool allow_direct = false;
  };
  struct Done {
    /// Of any status: shapes and times are checked. Outputs are what the service wrote, and can
    /// change as long as it lives.
    BurstResult result;
    bool was_direct = false;
  };

  /// The model must outlive the client only while it is called. kDevice with the service's words
  /// when it refuses; kExhausted, kCorrupt.
  static Result<std::unique_ptr<BurstClient>> create(std::shared_ptr<BurstModel> model,
                                                     const Options& options);
  static Result<std::unique_ptr<BurstClient>> create(std::shared_ptr<BurstModel> model) {
    return create(std::move(model), Options{});
  }

  /// Ends the burst. No thread may be in execute() any more; interrupt() gets it out.
  ~BurstClient();
  BurstClient(const BurstClient&) = delete;
  BurstClient& operator=(const BurstClient&) = delete;

  Result<Done, BurstFailure> execute(const Execution& execution);
  /// The same instead of what `done` had, whose room is used again. On a failure it has anything.
  Result<void, BurstFailure> execute_into(const Execution& execution, Done& done);

  /// Ends waits, now and later: an execution in flight is late. From any thread.
  void interrupt();

  /// False once the service is gone or was corrupt: only a new client helps.
  bool is_alive() const;
  /// An execution came back too late or not at all: its memory is still the service's, perhaps.
  bool is_late() const { return is_late_; }
  /// The service forgets a file; it is shown again when it is used again, by another number.
  void free_memory(const SharedFile& file);
  /// Files that the service knows.
  std::size_t slots() const;

 private:
  class Slots;
  struct Queues;

  BurstClient(std::shared_ptr<BurstModel> model, const Options& options,
              std::shared_ptr<Slots> slots, std::shared_ptr<Lifeline> lifeline,
              std::unique_ptr<Queues> queues);

  /// Fills request_.
  Result<void, BurstFailure> prepare_request(const Execution& execution);
  Result<void, BurstFailure> execute_alone(const Execution& execution, Done& done);
  /// Sends request_ and takes its result.
  Result<void, BurstFailure> cross(Deadline deadline, BurstResult& result);
  Result<void, BurstFailure> take_result(Deadline deadline, BurstResult& result);
  /// Takes the result of the execution that was late, if it has come.
  bool recover();
  Result<void> check_result(const Execution& execution, const BurstResult& result) const;
  Result<void> settle(const Execution& execution) const;
  std::unexpected<BurstFailure> corrupt(std::string why, bool was_sent = true);

  const std::shared_ptr<BurstModel> model_;
  const Options options_;
  const std::shared_ptr<Slots> slots_;
  const std::shared_ptr<Lifeline> lifeline_;
  const std::unique_ptr<Queues> queues_;
  PollBudget budget_;
  BurstRequest request_;  // Of the execution that runs; its room is used again.
  std::atomic<bool> is_busy_{false};
  std::atomic<bool> is_late_{false};
  std::vector<std::shared_ptr<SharedFile>> late_files_;  // Kept until the late result is here.
};

}  // namespace penstock
