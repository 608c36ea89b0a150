// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/burst_client.h"

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "penstock/base/checked.h"
#include "penstock/base/str_format.h"
#include "penstock/burst/datum.h"
#include "penstock/burst/message_queue.h"
#include "penstock/burst/packet_channel.h"
#include "penstock/burst/request_packet.h"
#include "penstock/burst/result_packet.h"

namespace penstock {
namespace {

using Requests = MessageQueue<FmqRequestDatum, QueueFlavor::kSynchronised>;
using Results = MessageQueue<FmqResultDatum, QueueFlavor::kSynchronised>;

std::unexpected<BurstFailure> failed(BurstFault fault, bool was_sent, std::string message) {
  return std::unexpected(BurstFailure{fault, was_sent, "burst: " + std::move(message)});
}

std::unexpected<BurstFailure> invalid(std::string message) {
  return failed(BurstFault::kInvalid, false, std::move(message));
}

std::vector<std::shared_ptr<SharedFile>> files_of(const BurstClient::Execution& execution) {
  std::vector<std::shared_ptr<SharedFile>> files;
  for (const auto* arguments : {&execution.inputs, &execution.outputs}) {
    for (const auto& argument : *arguments) {
      if (argument.memory != nullptr) files.push_back(argument.memory);
    }
  }
  return files;
}

}  // namespace

struct BurstClient::Queues {
  Requests::Writer requests;
  Results::Reader results;
  // What crosses, in private memory; its room is used again.
  std::vector<FmqRequestDatum> request{};
  std::vector<FmqResultDatum> result{};
};

/// The numbers of files. Also what the service asks for their memory, so that it may outlive the
/// client.
class BurstClient::Slots final : public BurstCallback, public std::enable_shared_from_this<Slots> {
 public:
  std::unique_lock<std::mutex> lock() const { return std::unique_lock(mutex_); }

  /// The slot of a file, a new one if it has none; nothing when all have been given.
  std::optional<std::int32_t> slot_of(const std::unique_lock<std::mutex>& /*lock*/,
                                      const std::shared_ptr<SharedFile>& file) {
    const auto found = by_file_.find(file.get());
    if (found != by_file_.end()) return found->second;
    if (next_ == std::numeric_limits<std::int32_t>::max()) return std::nullopt;
    const std::int32_t slot = next_++;
    by_file_.emplace(file.get(), slot);
    by_slot_.emplace(slot, file);
    // Once a file, however often it is freed and used again.
    if (hooked_.insert(file.get()).second) {
      file->when_gone([slots = weak_from_this(), raw = file.get()] {
        if (const auto alive = slots.lock()) alive->file_is_gone(raw);
      });
    }
    return slot;
  }

  void file_is_gone(const SharedFile* file) {
    forget(file);
    const std::lock_guard lock(mutex_);
    hooked_.erase(file);
  }

  void forget(const SharedFile* file) {
    const std::lock_guard lock(mutex_);
    const auto found = by_file_.find(file);
    if (found == by_file_.end()) return;
    const std::int32_t slot = found->second;
    by_slot_.erase(slot);
    by_file_.erase(found);
    // Under the lock, so that the context can't go meanwhile; it only sends.
    if (context_ != nullptr) context_->free_memory(slot);
  }

  Memories get_memories(std::span<const std::int32_t> slots, Deadline) override {
    Memories memories{.status = ErrorStatus::kNone, .memories = {}};
    for (const std::int32_t slot : slots) {
      std::shared_ptr<SharedFile> file;
      {
        const std::lock_guard lock(mutex_);
        const auto found = by_slot_.find(slot);
        if (found != by_slot_.end()) file = found->second.lock();
      }
      // Letting go of it below may be the last: not under the lock, which forget() takes.
      if (file == nullptr) return {.status = ErrorStatus::kInvalidArgument, .memories = {}};
      auto copy = file->duplicate();
      if (!copy) return {.status = ErrorStatus::kGeneralFailure, .memories = {}};
      memories.memories.push_back({.kind = MemoryKind::kSharedFile,
                                   .access = file->peers() == MapAccess::kRead
                                                 ? MemoryAccess::kRead
                                                 : MemoryAccess::kReadWrite,
                                   .offset = 0,
                                   .size = file->size(),
                                   .file = std::move(*copy)});
    }
    return memories;
  }

  void set_context(std::unique_ptr<BurstContext> context) {
    std::unique_ptr<BurstContext> old;
    const std::lock_guard lock(mutex_);
    old = std::exchange(context_, std::move(context));
  }
  /// For calls that take long: the context stays, as only the client's end takes it away.
  BurstContext* context() const {
    const std::lock_guard lock(mutex_);
    return context_.get();
  }
  /// Takes it out, so that it can go without the lock.
  std::unique_ptr<BurstContext> take_context() {
    const std::lock_guard lock(mutex_);
    return std::move(context_);
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return by_slot_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::map<const SharedFile*, std::int32_t> by_file_;
  std::map<std::int32_t, std::weak_ptr<SharedFile>> by_slot_;
  std::set<const SharedFile*> hooked_;  // Files that tell us when they go.
  std::int32_t next_ = 0;
  std::unique_ptr<BurstContext> context_;
};

Result<std::unique_ptr<BurstClient>> BurstClient::create(std::shared_ptr<BurstModel> model,
                                                         const Options& options) {
  auto lifeline = std::make_shared<Lifeline>();
  const QueueUse use{.lifeline = lifeline, .clock = options.clock};
  auto requests =
      Requests::create_writer({.elements = kBurstChannelLength, .event_flag = true}, use);
  if (!requests) return std::unexpected(std::move(requests).error());
  auto results = Results::create_reader({.elements = kBurstChannelLength, .event_flag = true}, use);
  if (!results) return std::unexpected(std::move(results).error());
  auto described_requests = requests->describe();
  if (!described_requests) return std::unexpected(std::move(described_requests).error());
  auto described_results = results->describe();
  if (!described_results) return std::unexpected(std::move(described_results).error());

  auto slots = std::make_shared<Slots>();
  auto configured = model->configure_burst({.callback = slots,
                                            .requests = std::move(*described_requests),
                                            .results = std::move(*described_results),
                                            .client_lifeline = lifeline,
                                            .service_lifeline = nullptr,
                                            .poll_window = options.service_poll_window,
                                            .execution_limit = options.execution_limit});
  if (configured.status != ErrorStatus::kNone || configured.context == nullptr) {
    return fail(configured.status == ErrorStatus::kResourceExhaustedTransient
                    ? ErrorKind::kExhausted
                    : ErrorKind::kDevice,
                str_format("no burst: {}", configured.message.empty()
                                               ? "the service refuses without a reason"
                                               : configured.message));
  }
  PENSTOCK_TRY(requests->settle());
  PENSTOCK_TRY(results->settle());
  slots->set_context(std::move(configured.context));
  return std::unique_ptr<BurstClient>(
      new BurstClient(std::move(model), options, std::move(slots), std::move(lifeline),
                      std::make_unique<Queues>(std::move(*requests), std::move(*results))));
}

BurstClient::BurstClient(std::shared_ptr<BurstModel> model, const Options& options,
                         std::shared_ptr<Slots> slots, std::shared_ptr<Lifeline> lifeline,
                         std::unique_ptr<Queues> queues)
    : model_(std::move(model)),
      options_(options),
      slots_(std::move(slots)),
      lifeline_(std::move(lifeline)),
      queues_(std::move(queues)),
      budget_(std::clamp(options.poll_window, Nanoseconds(0), kMaxPollWindow)) {}

BurstClient::~BurstClient() {
  lifeline_->cut(Lifeline::Cause::kStopped);
  // After this nobody of the service touches anything of ours; files that were late can go.
  slots_->take_context().reset();
}

void BurstClient::interrupt() { lifeline_->cut(Lifeline::Cause::kStopped); }

bool BurstClient::is_alive() const { return lifeline_->check().has_value(); }

void BurstClient::free_memory(const SharedFile& file) { slots_->forget(&file); }

std::size_t BurstClient::slots() const { return slots_->size(); }

std::unexpected<BurstFailure> BurstClient::corrupt(std::string why, bool was_sent) {
  lifeline_->cut(Lifeline::Cause::kCorrupt);
  return failed(BurstFault::kCorrupt, was_sent, std::move(why));
}

Result<BurstClient::Done, BurstFailure> BurstClient::execute(const Execution& execution) {
  Done done;
  PENSTOCK_TRY(execute_into(execution, done));
  return done;
}

Result<void, BurstFailure> BurstClient::execute_into(const Execution& execution, Done& done) {
  if (execution.deadline.at() == TimePoint::max()) return invalid("it has no deadline");
  if (is_busy_.exchange(true, std::memory_order_acquire)) {
    return failed(BurstFault::kBusy, false, "another execution is running");
  }
  auto executed = execute_alone(execution, done);
  if (!executed && executed.error().was_sent && executed.error().fault != BurstFault::kCorrupt) {
    // The service may be writing to them.
    late_files_ = files_of(execution);
    is_late_ = true;
  }
  is_busy_.store(false, std::memory_order_release);
  return executed;
}

Result<void, BurstFailure> BurstClient::prepare_request(const Execution& execution) {
  request_.measure = execution.measure;
  request_.slots.clear();
  const auto lock = slots_->lock();
  const auto set = [&](RequestArgument& to, const Argument& argument,
                       bool is_output) -> Result<void, BurstFailure> {
    to.has_no_value = argument.memory == nullptr;
    to.dimensions.clear();
    if (to.has_no_value) {
      to.location = {};
      return {};
    }
    if (std::uint64_t{argument.offset} + argument.length > argument.memory->size()) {
      return invalid(str_format("{} bytes from {} on, in a file of {}", argument.length,
                                argument.offset, argument.memory->size()));
    }
    if (is_output && argument.memory->peers() != MapAccess::kReadWrite) {
      return invalid("an output in a file that the service may only read");
    }
    const auto slot = slots_->slot_of(lock, argument.memory);
    if (!slot) return invalid("all slots have been given");
    auto found = std::ranges::find(request_.slots, *slot);
    if (found == request_.slots.end()) found = request_.slots.insert(found, *slot);
    to.location = {.pool = static_cast<std::uint32_t>(found - request_.slots.begin()),
                   .offset = argument.offset,
                   .length = argument.length};
    to.dimensions = argument.dimensions;
    return {};
  };
  request_.inputs.resize(execution.inputs.size());
  for (std::size_t i = 0; i < execution.inputs.size(); ++i) {
    PENSTOCK_TRY(set(request_.inputs[i], execution.inputs[i], false));
  }
  request_.outputs.resize(execution.outputs.size());
  for (std::size_t i = 0; i < execution.outputs.size(); ++i) {
    PENSTOCK_TRY(set(request_.outputs[i], execution.outputs[i], true));
  }
  return {};
}

bool BurstClient::recover() {
  const auto there = queues_->results.available();
  if (!there || *there == 0) return false;
  std::vector<FmqResultDatum> ignored(*there);
  if (!queues_->results.read(ignored)) return false;
  late_files_.clear();
  is_late_ = false;
  return true;
}

Result<void, BurstFailure> BurstClient::execute_alone(const Execution& execution, Done& done) {
  if (!is_alive()) return failed(BurstFault::kGone, false, "the service is gone");
  if (is_late_ && !recover()) {
    return failed(BurstFault::kBusy, false, "an execution whose deadline passed is not back yet");
  }
  PENSTOCK_TRY(prepare_request(execution));
  done.was_direct = false;
  auto crossed = cross(execution.deadline, done.result);
  if (!crossed) {
    if (crossed.error().fault != BurstFault::kTooLong || !execution.allow_direct) return crossed;
    BurstContext* const context = slots_->context();
    done.result = context->execute(request_, execution.deadline);
    done.was_direct = true;
    if (!is_alive()) {
      return execution.deadline.passed(*options_.clock)
                 ? failed(BurstFault::kLate, true, "no result by the deadline; the burst is over")
                 : failed(BurstFault::kGone, true,
                          "the service is gone; whether it executed is not known");
    }
  }
  if (auto checked = check_result(execution, done.result); !checked) {
    return corrupt(checked.error().message());
  }
  if (done.result.status == ErrorStatus::kNone) {
    if (auto settled = settle(execution); !settled) return corrupt(settled.error().message());
  }
  return {};
}

Result<void, BurstFailure> BurstClient::cross(Deadline deadline, BurstResult& result) {
  auto& packet = queues_->request;
  serialise_into(request_, packet);
  if (packet.size() > queues_->requests.capacity()) {
    return failed(BurstFault::kTooLong, false,
                  str_format("a request of {} datums; the queue holds {}", packet.size(),
                             queues_->requests.capacity()));
  }
  const auto waiting = queues_->results.available();
  if (!waiting || *waiting > 0) {
    return corrupt("a result that nobody asked for", false);
  }
  const auto sent = send_packet<FmqRequestDatum>(queues_->requests, packet);
  if (!sent) {
    switch (sent.error()) {
      case QueueError::kPeerGone:
      case QueueError::kStopped:
        return failed(BurstFault::kGone, false, "the service is gone");
      default:
        return corrupt("the request queue is not empty, though its last request was answered",
                       false);
    }
  }
  tell_room(queues_->results);
  return take_result(deadline, result);
}

Result<void, BurstFailure> BurstClient::take_result(Deadline deadline, BurstResult& result) {
  const PollBudget::Turn turn = budget_.next();
  bool slept = false;
  auto& packet = queues_->result;
  auto came = receive_packet(queues_->results, packet, deadline,
                             {.poll_window = turn.window(), .slept = &slept});
  budget_.note(turn, slept);
  if (!came && came.error() == QueueError::kDeadline) {
    return failed(BurstFault::kLate, true, "no result by the deadline");
  }
  if (!came && (came.error() == QueueError::kPeerGone || came.error() == QueueError::kStopped)) {
    // A service may answer and end: what it left is looked at once, and checked like any other.
    const auto there = queues_->results.available();
    if (!there || *there == 0) {
      return failed(BurstFault::kGone, true,
                    "the service is gone; whether it executed is not known");
    }
    packet.resize(*there);
    if (!queues_->results.read(packet)) return corrupt("a result that can't be read");
    came = {};
  }
  if (!came) return corrupt("its queue is corrupt");
  const auto parsed = parse_result_into(packet, result);
  if (!parsed) return corrupt("a malformed result: " + message_of(parsed.error()));
  return {};
}

Result<void> BurstClient::check_result(const Execution& execution,
                                       const BurstResult& result) const {
  const auto wrong = [](std::string why) {
    return fail(ErrorKind::kCorrupt, "a result of the service: " + std::move(why));
  };
  if (result.shapes.empty()) return {};
  if (result.shapes.size() != execution.outputs.size()) {
    return wrong(
        str_format("{} shapes of {} outputs", result.shapes.size(), execution.outputs.size()));
  }
  const auto& specs = model_->outputs();
  for (std::size_t i = 0; i < result.shapes.size(); ++i) {
    const auto& dims = result.shapes[i].dimensions;
    if (result.status == ErrorStatus::kNone && !result.shapes[i].is_sufficient) {
      return wrong(str_format("output {} is there, and has no room", i));
    }
    if (i >= specs.size()) continue;
    if (dims.size() != specs[i].dims.size()) {
      return wrong(str_format("output {} has {} dimensions", i, dims.size()));
    }
    std::optional<std::uint64_t> size = size_of(specs[i].type);
    for (std::size_t d = 0; d < dims.size(); ++d) {
      // None of something (0) can be where a number is open, or where no result is.
      const bool may_be_none = result.status != ErrorStatus::kNone || !specs[i].dims[d].is_fixed();
      if (!(dims[d] == 0 && may_be_none) && !specs[i].dims[d].accepts(dims[d])) {
        return wrong(str_format("dimension {} of output {} is {}", d, i, dims[d]));
      }
      if (size) size = checked_product<std::uint64_t>(*size, std::uint64_t{dims[d]});
    }
    if (!size || (result.status == ErrorStatus::kNone && execution.outputs[i].memory != nullptr &&
                  *size > execution.outputs[i].length)) {
      return wrong(str_format("output {} of {} is larger than its place", i,
                              to_string(Shape(dims.begin(), dims.end()))));
    }
  }
  return {};
}

Result<void> BurstClient::settle(const Execution& execution) const {
  for (const Argument& output : execution.outputs) {
    if (output.memory != nullptr) PENSTOCK_TRY(output.memory->settle());
  }
  return {};
}

}  // namespace penstock
