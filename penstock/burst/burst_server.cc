// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/burst_server.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/base/log.h"
#include "penstock/base/str_format.h"
#include "penstock/burst/control_messages.h"
#include "penstock/burst/datum.h"
#include "penstock/burst/message_queue.h"
#include "penstock/burst/packet_channel.h"
#include "penstock/burst/poll_budget.h"
#include "penstock/burst/request_packet.h"
#include "penstock/burst/result_packet.h"

namespace penstock {
namespace {

using Requests = MessageQueue<FmqRequestDatum, QueueFlavor::kSynchronised>;
using Results = MessageQueue<FmqResultDatum, QueueFlavor::kSynchronised>;

/// Malformed packets in a row that are answered at once, and after which the burst is over.
constexpr int kQuickAnswers = 16;
constexpr int kMostMalformed = 1024;
constexpr Nanoseconds kLongestNap = Milliseconds(50);
/// A waiting thread looks round this often; nothing depends on it.
constexpr Nanoseconds kListen = std::chrono::seconds(10);

BurstResult failure(ErrorStatus status = ErrorStatus::kGeneralFailure) {
  return {.status = status, .shapes = {}, .timing = {}};
}

/// The shape that both queues of a burst have, from the description alone: before anything of what
/// the client says is mapped.
bool is_burst_queue(const QueueDescriptor& queue, std::size_t quantum) {
  return check_parts(queue, quantum, QueueFlavor::kSynchronised) &&
         queue.grantors.size() == kMaxGrantors &&
         queue.grantors.at(static_cast<std::size_t>(QueuePart::kRing)).extent ==
             kBurstChannelLength * quantum;
}

/// Keeps what comes, and hands it over with every request.
class SynchronousExecutor final : public BurstExecutor {
 public:
  explicit SynchronousExecutor(std::shared_ptr<SynchronousModel> model)
      : model_(std::move(model)) {}

  bool is_cached(std::int32_t slot) const override { return memories_.contains(slot); }
  ErrorStatus add(std::int32_t slot, BurstMemory memory) override {
    memories_.insert_or_assign(slot, std::move(memory));
    return ErrorStatus::kNone;
  }
  void remove(std::int32_t slot) override { memories_.erase(slot); }
  BurstResult execute(const BurstRequest& request, Deadline deadline) override {
    std::vector<const BurstMemory*> pools;
    for (const std::int32_t slot : request.slots) pools.push_back(&memories_.at(slot));
    return model_->execute(request, pools, deadline);
  }

 private:
  const std::shared_ptr<SynchronousModel> model_;
  std::map<std::int32_t, BurstMemory> memories_;
};

std::uint64_t microseconds(Nanoseconds time) {
  return static_cast<std::uint64_t>(time.count()) / 1000;
}

/// With times where they were asked for and there is a result to have them.
BurstResult timed(BurstResult result, MeasureTiming measure, Nanoseconds in_driver) {
  result = sanitised(std::move(result));
  if (measure != MeasureTiming::kOn || result.status != ErrorStatus::kNone) {
    result.timing = {};
    return result;
  }
  result.timing.time_in_driver = microseconds(in_driver);
  if (result.timing.time_on_device != kNoTiming) {
    result.timing.time_on_device =
        std::min(result.timing.time_on_device, result.timing.time_in_driver);
  }
  return result;
}

bool is_clients_fault(QueueError error) {
  return error == QueueError::kFull || error == QueueError::kCorrupt;
}

}  // namespace

/// What the burst's thread and its context share, so that a context can go first.
class BurstServer::Burst {
 public:
  Burst(BurstConfiguration configuration, std::unique_ptr<BurstExecutor> executor,
        BurstServerOptions options, Requests::Reader requests, Results::Writer results)
      : callback_(std::move(configuration.callback)),
        lifeline_(std::move(configuration.service_lifeline)),
        client_lifeline_(std::move(configuration.client_lifeline)),
        limit_(configuration.execution_limit > Nanoseconds(0)
                   ? std::min(configuration.execution_limit, options.execution_limit)
                   : options.execution_limit),
        budget_(std::clamp(configuration.poll_window, Nanoseconds(0), kMaxPollWindow)),
        executor_(std::move(executor)),
        options_(std::move(options)),
        requests_(std::move(requests)),
        results_(std::move(results)) {}

  void run();
  BurstMetrics* metrics() const { return options_.metrics.get(); }
  void stop() { lifeline_->cut(Lifeline::Cause::kStopped); }
  void free_memory(std::int32_t slot);
  BurstResult execute_directly(const BurstRequest& request, Deadline deadline);

 private:
  TimePoint now() const { return options_.clock->now(); }
  Result<void, QueueError> serve_one();
  Result<void, QueueError> answer(BurstResult result, MeasureTiming measure, TimePoint taken);
  Result<void, QueueError> answer_malformed(const PacketError& error);
  /// Under execution_. Fetches what is missing, then executes.
  BurstResult execute(const BurstRequest& request, Deadline deadline);
  ErrorStatus fetch(const std::vector<std::int32_t>& slots);
  ErrorStatus fetch_some(std::span<const std::int32_t> slots, Deadline deadline);
  ErrorStatus keep(std::span<const std::int32_t> slots, std::vector<BurstMemory> memories);
  /// Takes out what was freed meanwhile. Without execution_.
  void release_freed();
  /// Within it.
  void remove_freed();

  const std::shared_ptr<BurstCallback> callback_;
  const std::shared_ptr<Lifeline> lifeline_;
  const std::shared_ptr<Lifeline> client_lifeline_;  // Null where the client needs no word.
  const Nanoseconds limit_;
  PollBudget budget_;
  const std::unique_ptr<BurstExecutor> executor_;
  const BurstServerOptions options_;
  Requests::Reader requests_;
  Results::Writer results_;
  // Of the burst's thread: what crosses, in private memory. Their room is used again.
  std::vector<FmqRequestDatum> request_packet_;
  std::vector<FmqResultDatum> result_packet_;
  BurstRequest request_;
  int malformed_ = 0;

  std::mutex execution_;  // Whoever uses executor_.
  std::mutex slots_mutex_;
  std::set<std::int32_t> known_;  // Cached or being fetched; no others can be freed.
  std::vector<std::int32_t> freed_;
  std::atomic<bool> has_freed_{false};  // freed_ is not empty.

 public:
  std::thread thread;
};

void BurstServer::Burst::run() {
  while (true) {
    const auto served = serve_one();
    if (served || served.error() == QueueError::kDeadline) continue;
    const bool is_theirs = is_clients_fault(served.error());
    if (is_theirs) log("burst").warn("a burst ends: its client broke the protocol of the queues");
    lifeline_->cut(is_theirs ? Lifeline::Cause::kCorrupt : Lifeline::Cause::kStopped);
    break;
  }
  // Whatever ended it: nobody answers any more.
  if (client_lifeline_ != nullptr) client_lifeline_->cut(Lifeline::Cause::kPeerGone);
}

Result<void, QueueError> BurstServer::Burst::serve_one() {
  TimePoint taken;
  {
    const PollBudget::Turn turn = budget_.next();
    bool slept = false;
    const auto came = receive_packet(requests_, request_packet_, Deadline(now() + kListen),
                                     {.poll_window = turn.window(), .slept = &slept});
    budget_.note(turn, slept);
    if (!came) return came;
    taken = now();
  }
  if (const auto parsed = parse_request_into(request_packet_, request_); !parsed) {
    return answer_malformed(parsed.error());
  }
  malformed_ = 0;
  BurstResult result;
  {
    const std::lock_guard lock(execution_);
    result = execute(request_, Deadline(taken + limit_));
  }
  // Before the answer, so that a slot whose freeing was told before the next request is gone.
  release_freed();
  return answer(std::move(result), request_.measure, taken);
}

Result<void, QueueError> BurstServer::Burst::answer_malformed(const PacketError& error) {
  ++malformed_;
  if (options_.metrics) options_.metrics->malformed.fetch_add(1, std::memory_order_relaxed);
  if (malformed_ == 1) {
    log("burst").warn("a malformed request: {}", message_of(error));
  }
  if (malformed_ > kMostMalformed) return std::unexpected(QueueError::kCorrupt);
  if (malformed_ > kQuickAnswers) {
    const int doublings = std::min(malformed_ - kQuickAnswers, 16);
    lifeline_->nap(now() + std::min(kLongestNap, Nanoseconds(10'000LL << doublings)));
  }
  return answer(failure(), MeasureTiming::kOff, now());
}

Result<void, QueueError> BurstServer::Burst::answer(BurstResult result, MeasureTiming measure,
                                                    TimePoint taken) {
  const bool is_timed = options_.metrics || measure == MeasureTiming::kOn;
  const Nanoseconds took = is_timed ? now() - taken : Nanoseconds(0);
  result = timed(std::move(result), measure, took);
  serialise_into(result, result_packet_);
  if (result_packet_.size() > kBurstChannelLength) {
    result = failure();
    serialise_into(result, result_packet_);
  }
  if (options_.metrics) {
    options_.metrics->count(result.status);
    options_.metrics->execution.record(took);
  }
  // The client sends nothing before it has taken the last result: no room is its fault, and not
  // waited for. Nor is the lifeline asked: who stops the burst wants this result to arrive yet.
  PENSTOCK_TRY(results_.write(result_packet_));
  results_.event_flag()->wake(EventFlag::kNotEmpty);
  tell_room(requests_);
  return {};
}

BurstResult BurstServer::Burst::execute(const BurstRequest& request, Deadline deadline) {
  std::vector<std::int32_t> missing;
  for (const std::int32_t slot : request.slots) {
    if (slot < 0) return failure(ErrorStatus::kInvalidArgument);
    if (!executor_->is_cached(slot)) missing.push_back(slot);
  }
  std::ranges::sort(missing);
  const auto repeated = std::ranges::unique(missing);
  missing.erase(repeated.begin(), repeated.end());
  if (!missing.empty()) {
    const ErrorStatus status = fetch(missing);
    if (status != ErrorStatus::kNone) return failure(status);
  }
  return executor_->execute(request, deadline);
}

ErrorStatus BurstServer::Burst::fetch(const std::vector<std::int32_t>& slots) {
  const Deadline deadline(now() + options_.memory_limit);
  const std::span<const std::int32_t> all(slots);
  for (std::size_t from = 0; from < all.size(); from += kMaxSlotsAtOnce) {
    const auto some = all.subspan(from, std::min(kMaxSlotsAtOnce, all.size() - from));
    const ErrorStatus status = fetch_some(some, deadline);
    if (status != ErrorStatus::kNone) return status;
  }
  return ErrorStatus::kNone;
}

ErrorStatus BurstServer::Burst::fetch_some(std::span<const std::int32_t> slots, Deadline deadline) {
  {
    // Before they are asked for: a client may free a slot as soon as it has answered.
    const std::lock_guard lock(slots_mutex_);
    known_.insert(slots.begin(), slots.end());
  }
  auto came = callback_->get_memories(slots, deadline);
  ErrorStatus status = came.status;
  if (status == ErrorStatus::kNone && came.memories.size() != slots.size()) {
    status = ErrorStatus::kGeneralFailure;
  }
  // What the client has freed before it answered makes room.
  remove_freed();
  if (status == ErrorStatus::kNone) status = keep(slots, std::move(came.memories));
  const std::lock_guard lock(slots_mutex_);
  for (const std::int32_t slot : slots) {
    const bool is_cached = executor_->is_cached(slot);
    if (!is_cached) known_.erase(slot);
    // Freed since it was asked for, and maybe before there was anything to remove.
    if (is_cached && !known_.contains(slot)) {
      freed_.push_back(slot);
      has_freed_ = true;
    }
  }
  return status;
}

ErrorStatus BurstServer::Burst::keep(std::span<const std::int32_t> slots,
                                     std::vector<BurstMemory> memories) {
  {
    const std::lock_guard lock(slots_mutex_);
    if (known_.size() > kMaxSlots) return ErrorStatus::kResourceExhaustedTransient;
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const ErrorStatus added = executor_->add(slots[i], std::move(memories[i]));
    if (added != ErrorStatus::kNone) return added;
  }
  return ErrorStatus::kNone;
}

void BurstServer::Burst::free_memory(std::int32_t slot) {
  {
    const std::lock_guard lock(slots_mutex_);
    if (known_.erase(slot) == 0) return;
    freed_.push_back(slot);
    has_freed_ = true;
  }
  release_freed();
}

void BurstServer::Burst::remove_freed() {
  std::vector<std::int32_t> freed;
  {
    const std::lock_guard lock(slots_mutex_);
    freed.swap(freed_);
    has_freed_ = false;
  }
  for (const std::int32_t slot : freed) executor_->remove(slot);
}

void BurstServer::Burst::release_freed() {
  // Between letting execution_ go and this look: who frees tells first and tries the lock then, so
  // that one of the two finds it.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  while (has_freed_) {
    // Who executes does this when it is done.
    const std::unique_lock execution(execution_, std::try_to_lock);
    if (!execution) return;
    remove_freed();
  }
}

BurstResult BurstServer::Burst::execute_directly(const BurstRequest& request, Deadline deadline) {
  const TimePoint taken = now();
  BurstResult result = failure();
  {
    const std::unique_lock execution(execution_, std::try_to_lock);
    if (!execution || !lifeline_->check()) return result;
    result = execute(request, Deadline(std::min(deadline.at(), taken + limit_)));
  }
  release_freed();
  if (options_.metrics) {
    options_.metrics->direct.fetch_add(1, std::memory_order_relaxed);
    options_.metrics->count(result.status);
    options_.metrics->execution.record(now() - taken);
  }
  return timed(std::move(result), request.measure, now() - taken);
}

ConfiguredBurst BurstServer::create(BurstConfiguration configuration,
                                    std::unique_ptr<BurstExecutor> executor,
                                    const BurstServerOptions& options) {
  const auto refuse = [&](ErrorStatus status, std::string why) {
    if (options.metrics) options.metrics->refused_bursts.fetch_add(1, std::memory_order_relaxed);
    return ConfiguredBurst{.status = status, .context = nullptr, .message = std::move(why)};
  };
  if (configuration.callback == nullptr || executor == nullptr) {
    return refuse(ErrorStatus::kInvalidArgument, "no callback or no executor");
  }
  if (!is_burst_queue(configuration.requests, sizeof(FmqRequestDatum)) ||
      !is_burst_queue(configuration.results, sizeof(FmqResultDatum))) {
    return refuse(ErrorStatus::kInvalidArgument,
                  str_format("queues of a burst are synchronised, have an event flag and room for "
                             "{} datums each",
                             kBurstChannelLength));
  }
  if (configuration.service_lifeline == nullptr) {
    configuration.service_lifeline = std::make_shared<Lifeline>();
  }
  const QueueUse use{.lifeline = configuration.service_lifeline, .clock = options.clock};
  auto requests = Requests::attach_reader(std::move(configuration.requests), use);
  if (!requests) return refuse(ErrorStatus::kInvalidArgument, requests.error().message());
  auto results = Results::attach_writer(std::move(configuration.results), use);
  if (!results) return refuse(ErrorStatus::kInvalidArgument, results.error().message());
  const auto waiting = requests->available();
  const auto room = results->available();
  if (!waiting || *waiting != 0 || !room || *room != kBurstChannelLength) {
    return refuse(ErrorStatus::kInvalidArgument, "the queues have been used");
  }
  auto burst = std::make_shared<Burst>(std::move(configuration), std::move(executor), options,
                                       std::move(*requests), std::move(*results));
  try {
    burst->thread = std::thread([burst] {
      if (burst->metrics() != nullptr) ++burst->metrics()->live_bursts;
      burst->run();
      if (burst->metrics() != nullptr) --burst->metrics()->live_bursts;
    });
  } catch (const std::system_error& error) {
    return refuse(ErrorStatus::kResourceExhaustedTransient,
                  str_format("no thread: {}", error.code().message()));
  }
  if (options.metrics) options.metrics->bursts.fetch_add(1, std::memory_order_relaxed);
  return {.status = ErrorStatus::kNone,
          .context = std::unique_ptr<BurstContext>(new BurstServer(std::move(burst))),
          .message = {}};
}

ConfiguredBurst BurstServer::create(BurstConfiguration configuration,
                                    std::shared_ptr<SynchronousModel> model,
                                    const BurstServerOptions& options) {
  std::unique_ptr<BurstExecutor> executor;
  if (model != nullptr) executor = std::make_unique<SynchronousExecutor>(std::move(model));
  return create(std::move(configuration), std::move(executor), options);
}

BurstServer::BurstServer(std::shared_ptr<Burst> burst) : burst_(std::move(burst)) {}

BurstServer::~BurstServer() {
  burst_->stop();
  if (burst_->thread.get_id() == std::this_thread::get_id()) {
    burst_->thread.detach();
  } else {
    burst_->thread.join();
  }
}

void BurstServer::free_memory(std::int32_t slot) { burst_->free_memory(slot); }

BurstResult BurstServer::execute(const BurstRequest& request, Deadline deadline) {
  return burst_->execute_directly(request, deadline);
}

}  // namespace penstock
