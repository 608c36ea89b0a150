// SPDX-License-Identifier: Apache-2.0
#include "gst/infer_stream.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "gst/batch_container.h"
#include "penstock/base/str_format.h"

namespace penstock::gst {
namespace {

/// Events between two frames are few; this only keeps a runaway upstream from growing the queue.
constexpr std::size_t kMaxWaitingEvents = 256;

}  // namespace

InferStream::InferStream(const Options& options)
    : executor_(options.executor),
      device_(options.device),
      interval_(options.interval),
      budget_(std::make_shared<FrameBudget>(options.frame_limit)),
      counts_(options.counts),
      reader_(options.device),
      sources_({.lanes = options.lanes, .make_tasks = options.make_tasks}) {
  budget_->interrupt();
}

InferStream::~InferStream() {
  interrupt();
  for (const IdentityPtr& identity : sources_.current()) retire(*identity);
}

GstFlowReturn InferStream::push_frame(BufferPtr buffer, const InputFormat& format) {
  Waiting waiting;
  Moment moment;
  auto arrived = reader_.read(buffer.get(), format);
  if (arrived && arrived->most_of_a_stream > budget_->limit()) {
    arrived = fail(ErrorKind::kExhausted,
                   str_format("the container has {} frames of stream '{}', at most {} are held; "
                              "raise queue-depth",
                              arrived->most_of_a_stream, arrived->busiest, budget_->limit()));
  }
  waiting.lease = budget_->acquire(arrived ? arrived->most_of_a_stream : 1);
  waiting.arrived = Clock::system().now();
  {
    const std::lock_guard lock(mutex_);
    if (flow_ != GST_FLOW_OK) return flow_;
    if (eos_ || wants_no_more_) return GST_FLOW_EOS;
    // Unlinked and linked again while this waited: the frame is one of those that were dropped.
    if (waiting.lease == nullptr) return GST_FLOW_OK;
    if (arrived) admit(*arrived, moment);
  }
  if (!arrived) return enqueue_failure(arrived.error().context("reading a container"));
  std::vector<InferenceRequest> requests;
  for (std::size_t i = 0; i < arrived->frames.size(); ++i) {
    if (moment.tickets[i].number % interval_ != 0) continue;
    auto begun = begin_frame(arrived->frames[i], moment.tickets[i], moment.generation,
                             waiting.lease, device_);
    if (!begun) return enqueue_failure(begun.error());
    if (begun->task == nullptr) continue;
    std::ranges::move(begun->requests, std::back_inserter(requests));
    begun->requests.clear();
    waiting.running.push_back(*std::move(begun));
  }
  if (!requests.empty()) {
    auto futures = executor_->submit_all(std::move(requests));
    if (!futures) {
      {
        // An interruption cancels a submit that waits for room: the frame is dropped with the rest.
        const std::lock_guard lock(mutex_);
        if (moment.epoch != epoch_) return flow_;
      }
      return enqueue_failure(
          futures.error().context(str_format("submitting frame {}", waiting.running[0].number)));
    }
    waiting.futures = *std::move(futures);
  }
  waiting.item = Frame{std::move(buffer), {}};
  return enqueue(std::move(waiting), moment.epoch);
}

void InferStream::admit(const Arrived& arrived, Moment& moment) {
  moment.generation = generation_;
  moment.epoch = epoch_;
  if (arrived.is_container) sources_.list(arrived.streams);
  for (const ArrivedFrame& frame : arrived.frames) {
    moment.tickets.push_back(arrived.is_container ? sources_.next_frame(frame.key, frame.buffer)
                                                  : sources_.next_frame(frame.buffer));
  }
  frames_ += arrived.frames.size();
}

GstFlowReturn InferStream::enqueue(Waiting waiting, guint64 epoch) {
  const std::lock_guard lock(mutex_);
  // Also when the flow is OK again, after a new link: the frame's run has been cancelled.
  if (epoch != epoch_) return flow_;
  if (wants_no_more_) return GST_FLOW_EOS;
  waiting.ended = sources_.take_ended();
  waiting_.push_back(std::move(waiting));
  changed_.notify_all();
  return GST_FLOW_OK;
}

GstFlowReturn InferStream::push_event(EventPtr event) {
  const GstEventType type = GST_EVENT_TYPE(event.get());
  Waiting waiting;
  std::unique_lock lock(mutex_);
  changed_.wait(lock,
                [this] { return flow_ != GST_FLOW_OK || waiting_events_ < kMaxWaitingEvents; });
  if (flow_ != GST_FLOW_OK && (!GST_EVENT_IS_STICKY(event.get()) || type == GST_EVENT_EOS)) {
    return flow_;
  }
  if (type == GST_EVENT_STREAM_START) note_stream_start(event.get());
  if (flow_ != GST_FLOW_OK) {
    keep_sticky(std::move(event));
    return GST_FLOW_OK;
  }
  if (type == GST_EVENT_EOS) eos_ = true;
  if (type == GST_EVENT_SEGMENT) wants_no_more_ = false;
  waiting.ended = sources_.take_ended();
  waiting.item = std::move(event);
  waiting_.push_back(std::move(waiting));
  ++waiting_events_;
  changed_.notify_all();
  return GST_FLOW_OK;
}

void InferStream::note_stream_start(GstEvent* event) {
  eos_ = false;
  const gchar* name = nullptr;
  gst_event_parse_stream_start(event, &name);
  sources_.start(name);
}

GstFlowReturn InferStream::enqueue_failure(Error error) {
  Waiting waiting;
  waiting.item = std::move(error);
  std::unique_lock lock(mutex_);
  if (flow_ != GST_FLOW_OK) return flow_;
  const guint64 epoch = epoch_;
  waiting.ended = sources_.take_ended();
  waiting_.push_back(std::move(waiting));
  changed_.notify_all();
  changed_.wait(lock, [&] { return epoch != epoch_; });
  return flow_;
}

bool InferStream::run_query(GstQuery* query) {
  auto ticket = std::make_shared<Query>();
  ticket->query = query;
  std::unique_lock lock(mutex_);
  if (flow_ != GST_FLOW_OK) return false;
  Waiting waiting;
  waiting.item = ticket;
  waiting_.push_back(std::move(waiting));
  changed_.notify_all();
  // Once taken, the query is being written by the other thread and must outlive that.
  const guint64 epoch = epoch_;
  changed_.wait(lock, [&] {
    return ticket->done || (!ticket->taken && (flow_ != GST_FLOW_OK || epoch != epoch_));
  });
  return ticket->done && ticket->answered;
}

void InferStream::finish(const QueryPtr& query, bool answered) {
  const std::lock_guard lock(mutex_);
  query->done = true;
  query->answered = answered;
  changed_.notify_all();
}

std::optional<InferStream::Output> InferStream::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return flow_ != GST_FLOW_OK || !waiting_.empty(); });
  if (flow_ != GST_FLOW_OK) return std::nullopt;
  // The frame stays in the queue while its results are awaited, so that an interruption finds it.
  std::vector<Result<InferenceResult>> results;
  if (!waiting_.front().futures.empty()) {
    Futures futures = std::move(waiting_.front().futures);
    const guint64 epoch = epoch_;
    lock.unlock();
    for (SharedBatchExecutor::Future& future : futures) results.push_back(future.get());
    lock.lock();
    if (flow_ != GST_FLOW_OK || epoch != epoch_) return std::nullopt;
  }
  Waiting waiting = std::move(waiting_.front());
  waiting_.pop_front();
  if (std::holds_alternative<EventPtr>(waiting.item)) --waiting_events_;
  if (auto* query = std::get_if<QueryPtr>(&waiting.item)) (*query)->taken = true;
  links_before_ = links_;
  changed_.notify_all();
  lock.unlock();

  if (auto concluded = conclude(waiting, std::move(results)); !concluded) {
    waiting.item = std::move(concluded).error();
  }
  return leave(std::move(waiting));
}

Result<void> InferStream::conclude(Waiting& waiting, std::vector<Result<InferenceResult>> results) {
  auto result = results.begin();
  for (FrameRequests& running : waiting.running) {
    std::vector<InferenceResult> own;
    Nanoseconds longest{};
    for (std::size_t i = 0; i < running.count; ++i, ++result) {
      if (!*result) {
        return std::unexpected(
            result->error().context(str_format("inferring frame {}", running.number)));
      }
      const StageTimes& times = (*result)->times;
      longest = std::max(longest, times.queue + times.preprocess + times.infer + times.decode);
      if (!(*result)->unusable.empty()) note_unusable((*result)->unusable);
      own.push_back(std::move(**result));
    }
    if (running.count > 0 && run_time_.add(longest)) run_time_changed_ = true;
    // The results are there, so nobody reads the frame any more, although a worker may not have
    // dropped it yet. Downstream gets unmapped memory and, when it was alone, a writable buffer.
    if (running.hold != nullptr) running.hold->release();
    running.task->conclude(std::move(own));
  }
  auto* frame = std::get_if<Frame>(&waiting.item);
  if (frame == nullptr) return {};
  const std::lock_guard lock(mutex_);
  for (FrameRequests& running : waiting.running) {
    if (running.count > 0) ++inferred_;
    frame->analysed.push_back({running.place, std::move(running.task)});
  }
  return {};
}

void InferStream::note_unusable(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (unusable_++ == 0) first_unusable_.emplace(ErrorKind::kInvalidArgument, why);
}

std::optional<Error> InferStream::take_unusable() {
  const std::lock_guard lock(mutex_);
  return std::exchange(first_unusable_, std::nullopt);
}

InferStream::Output InferStream::leave(Waiting waiting) {
  for (const IdentityPtr& ended : waiting.ended) retire(*ended);
  if (auto* event = std::get_if<EventPtr>(&waiting.item)) return std::move(*event);
  if (auto* query = std::get_if<QueryPtr>(&waiting.item)) return std::move(*query);
  if (auto* error = std::get_if<Error>(&waiting.item)) return std::move(*error);
  residency_.record(Clock::system().now() - waiting.arrived);
  return std::move(std::get<Frame>(waiting.item));
}

bool InferStream::end(GstFlowReturn reason) {
  if (reason == GST_FLOW_EOS) {
    drop_frames_until_pushable();
    return false;
  }
  bool unseen = false;
  Stopped stopped;
  {
    const std::lock_guard lock(mutex_);
    if (flow_ != GST_FLOW_OK) return false;
    // Linked anew while the frame was refused for want of a peer: the next one has a peer.
    if (reason == GST_FLOW_NOT_LINKED && links_ != links_before_) return false;
    unseen = eos_;
    stopped = stop(reason);
  }
  let_go(std::move(stopped));
  return unseen;
}

void InferStream::drop_frames_until_pushable() {
  // Declared before the lock: frames go after it. Their runs end by themselves.
  std::deque<Waiting> dropped;
  {
    const std::lock_guard lock(mutex_);
    if (flow_ != GST_FLOW_OK) return;
    wants_no_more_ = true;
    std::deque<Waiting> kept;
    for (Waiting& waiting : waiting_) {
      if (const auto* event = std::get_if<EventPtr>(&waiting.item)) {
        const GstEventType type = GST_EVENT_TYPE(event->get());
        if (type == GST_EVENT_SEGMENT) wants_no_more_ = false;
      }
      const bool drop = wants_no_more_ && std::holds_alternative<Frame>(waiting.item);
      (drop ? dropped : kept).push_back(std::move(waiting));
    }
    waiting_.swap(kept);
    sources_.forget_frames();
  }
  for (Waiting& waiting : dropped) {
    for (const IdentityPtr& identity : waiting.ended) retire(*identity);
  }
}

void InferStream::interrupt() {
  Stopped stopped;
  {
    const std::lock_guard lock(mutex_);
    stopped = stop(GST_FLOW_FLUSHING);
  }
  let_go(std::move(stopped));
}

InferStream::Stopped InferStream::stop(GstFlowReturn flow) {
  flow_ = failed_ ? GST_FLOW_ERROR : flow;
  Stopped stopped;
  stopped.dropped.swap(waiting_);
  for (Waiting& waiting : stopped.dropped) {
    if (auto* event = std::get_if<EventPtr>(&waiting.item)) keep_sticky(std::move(*event));
  }
  waiting_events_ = 0;
  stopped.ended = sources_.take_ended();
  stopped.current = sources_.current();
  stopped.generation = generation_;
  ++epoch_;
  budget_->interrupt();  // With the flow: a resume() must not come between the two.
  changed_.notify_all();
  return stopped;
}

void InferStream::let_go(Stopped stopped) {
  // The executor's own lock is taken here, and frames that it drops give leases back.
  for (Waiting& waiting : stopped.dropped) {
    stopped.ended.insert(stopped.ended.end(), waiting.ended.begin(), waiting.ended.end());
  }
  for (const IdentityPtr& identity : stopped.ended) {
    cancel(*identity, stopped.generation);
    retire(*identity);
  }
  for (const IdentityPtr& identity : stopped.current) cancel(*identity, stopped.generation);
}

void InferStream::cancel(const Identity& identity, Generation generation) {
  for (std::size_t i = 0; i < identity.lanes; ++i) executor_->cancel(identity.lane(i), generation);
}

void InferStream::retire(const Identity& identity) {
  for (std::size_t i = 0; i < identity.lanes; ++i) executor_->retire(identity.lane(i));
}

void InferStream::keep_sticky(EventPtr event) {
  if (!GST_EVENT_IS_STICKY(event.get()) || GST_EVENT_TYPE(event.get()) == GST_EVENT_EOS) return;
  std::erase_if(sticky_, [&](const EventPtr& kept) { return replaces(event.get(), kept.get()); });
  sticky_.push_back(std::move(event));
}

std::optional<std::vector<EventPtr>> InferStream::resume(After what) {
  const std::lock_guard lock(mutex_);
  if (what == After::kLink) {
    ++links_;
    if (flow_ != GST_FLOW_NOT_LINKED) return std::nullopt;
  }
  ++generation_;
  sources_.forget_frames();
  eos_ = false;
  wants_no_more_ = false;
  if (!failed_) {
    flow_ = GST_FLOW_OK;
    budget_->resume();
  }
  if (what == After::kFlush) {
    std::erase_if(sticky_, [](const EventPtr& event) {
      return GST_EVENT_TYPE(event.get()) == GST_EVENT_SEGMENT;
    });
  }
  return std::exchange(sticky_, {});
}

GstFlowReturn InferStream::flow() const {
  const std::lock_guard lock(mutex_);
  return flow_;
}

bool InferStream::claim_failure() {
  const std::lock_guard lock(mutex_);
  return !std::exchange(failed_, true);
}

InferStream::Stats InferStream::stats() const {
  Stats stats;
  {
    const std::lock_guard lock(mutex_);
    stats.frames = frames_;
    stats.inferred = inferred_;
    stats.unusable = unusable_;
    stats.streams = sources_.streams();
    stats.waiting = waiting_.size();
  }
  stats.objects = counts_->inferred;
  stats.objects_kept = counts_->kept;
  stats.objects_left_out = counts_->left_out;
  stats.held = budget_->held();
  stats.most_held = budget_->most_held();
  stats.residency_p50 = residency_.percentile(0.5);
  stats.residency_p99 = residency_.percentile(0.99);
  return stats;
}

}  // namespace penstock::gst
