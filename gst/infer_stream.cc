// SPDX-License-Identifier: Apache-2.0
#include "gst/infer_stream.h"

#include <atomic>
#include <cstddef>
#include <string>
#include <utility>

#include "gst/storage_memory.h"
#include "penstock/base/str_format.h"

namespace penstock::gst {
namespace {

/// Events between two frames are few; this only keeps a runaway upstream from growing the queue.
constexpr std::size_t kMaxWaitingEvents = 256;

GObject* display_on(GstBuffer* buffer) {
  return gst_buffer_n_memory(buffer) == 0 ? nullptr : display_of(gst_buffer_peek_memory(buffer, 0));
}

/// Of sticky events a pad keeps one a type, and of the types that may come several times (tags of
/// stream and container, custom ones) one a name.
bool replaces(GstEvent* later, GstEvent* earlier) {
  if (GST_EVENT_TYPE(later) != GST_EVENT_TYPE(earlier)) return false;
  if ((static_cast<guint>(GST_EVENT_TYPE(later)) & GST_EVENT_TYPE_STICKY_MULTI) == 0) return true;
  const GstStructure* named = gst_event_get_structure(later);
  return named != nullptr && gst_event_has_name(earlier, gst_structure_get_name(named));
}

/// What a frame keeps alive: its buffer and maps, its place in the budget, its stream's display.
struct Kept {
  std::shared_ptr<BufferHold> hold;
  FrameBudget::Lease lease;
  std::shared_ptr<const void> identity;
};

}  // namespace

InferStream::InferStream(const Options& options)
    : executor_(options.executor),
      device_(options.device),
      interval_(options.interval),
      budget_(std::make_shared<FrameBudget>(options.frame_limit)),
      identity_(new_identity("", nullptr)) {
  budget_->interrupt();
}

InferStream::~InferStream() {
  interrupt();
  executor_->retire(identity_->id);
}

InferStream::IdentityPtr InferStream::new_identity(std::string stream_id, GObject* display) const {
  // The serial keeps apart two elements that see one stream (behind a tee, say) and share an
  // executor.
  static std::atomic<guint64> serial{0};
  auto identity = std::make_shared<Identity>();
  identity->id.name = str_format("{}#{}", stream_id, serial.fetch_add(1));
  identity->stream_id = std::move(stream_id);
  if (display != nullptr) identity->display.reset(G_OBJECT(g_object_ref(display)));
  return identity;
}

InferStream::IdentityPtr InferStream::identity_for(GstBuffer* buffer) {
  GObject* display = display_on(buffer);
  if (display != identity_->display.get()) {
    ended_.push_back(std::exchange(identity_, new_identity(identity_->stream_id, display)));
  }
  return identity_;
}

GstFlowReturn InferStream::push_frame(BufferPtr buffer, const VideoFormat& format) {
  FrameBudget::Lease lease = budget_->acquire();
  Waiting waiting;
  waiting.arrived = Clock::system().now();
  IdentityPtr identity;
  guint64 number = 0;
  Generation generation = 0;
  guint64 epoch = 0;
  {
    const std::lock_guard lock(mutex_);
    if (flow_ != GST_FLOW_OK) return flow_;
    if (eos_ || wants_no_more_) return GST_FLOW_EOS;
    // Unlinked and linked again while this waited: the frame is one of those that were dropped.
    if (lease == nullptr) return GST_FLOW_OK;
    identity = identity_for(buffer.get());
    number = next_frame_++;
    generation = generation_;
    epoch = epoch_;
    ++frames_;
  }
  if (number % interval_ == 0) {
    auto made = frame_of(buffer.get(), format, device_);
    if (!made) {
      return enqueue_failure(made.error().context(str_format("reading frame {}", number)));
    }
    VideoFrame& frame = *made->frame;
    frame.source = identity->id;
    frame.generation = generation;
    frame.lease = std::make_shared<Kept>(made->hold, lease, identity);
    waiting.analysis = std::make_shared<Analysis>();
    FrameResult& result = waiting.analysis->result;
    result.source = identity->stream_id;
    result.frame = number;
    result.pts_ns = frame.pts_ns;
    result.generation = generation;
    result.width = frame.width;
    result.height = frame.height;
    waiting.hold = std::move(made->hold);
    auto future = executor_->submit({.frame = std::move(made->frame),
                                     .roi = {},
                                     .source = identity->id,
                                     .generation = generation},
                                    WhenFull::kWait);
    if (!future) {
      {
        // An interruption cancels a submit that waits for room: the frame is dropped with the rest.
        const std::lock_guard lock(mutex_);
        if (epoch != epoch_) return flow_;
      }
      return enqueue_failure(future.error().context(str_format("submitting frame {}", number)));
    }
    waiting.future = std::move(*future);
  }
  waiting.lease = std::move(lease);
  waiting.item = Frame{std::move(buffer), nullptr};
  return enqueue(std::move(waiting), epoch);
}

GstFlowReturn InferStream::enqueue(Waiting waiting, guint64 epoch) {
  const std::lock_guard lock(mutex_);
  // Also when the flow is OK again, after a new link: the frame's run has been cancelled.
  if (epoch != epoch_) return flow_;
  if (wants_no_more_) return GST_FLOW_EOS;
  waiting.ended = std::exchange(ended_, {});
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
  waiting.ended = std::exchange(ended_, {});
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
  if (name == nullptr || identity_->stream_id == name) return;
  ended_.push_back(std::exchange(identity_, new_identity(name, nullptr)));
  next_frame_ = 0;
}

GstFlowReturn InferStream::enqueue_failure(Error error) {
  Waiting waiting;
  waiting.item = std::move(error);
  std::unique_lock lock(mutex_);
  if (flow_ != GST_FLOW_OK) return flow_;
  const guint64 epoch = epoch_;
  waiting.ended = std::exchange(ended_, {});
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
  // The frame stays in the queue while its result is awaited, so that an interruption finds it.
  std::optional<Result<InferenceResult>> result;
  if (waiting_.front().future) {
    SharedBatchExecutor::Future future = std::move(*waiting_.front().future);
    const guint64 epoch = epoch_;
    lock.unlock();
    result = future.get();
    lock.lock();
    if (flow_ != GST_FLOW_OK || epoch != epoch_) return std::nullopt;
  }
  Waiting waiting = std::move(waiting_.front());
  waiting_.pop_front();
  if (std::holds_alternative<EventPtr>(waiting.item)) --waiting_events_;
  if (auto* query = std::get_if<QueryPtr>(&waiting.item)) (*query)->taken = true;
  if (result && *result) ++inferred_;
  links_before_ = links_;
  changed_.notify_all();
  lock.unlock();

  if (result && !*result) {
    waiting.item = std::move(
        result->error().context(str_format("inferring frame {}", waiting.analysis->result.frame)));
  } else if (result) {
    static_cast<Findings&>(waiting.analysis->result) = static_cast<Findings&&>(**result);
    waiting.analysis->device = std::move((*result)->device);
    waiting.analysis->times = (*result)->times;
    // The result is there, so nobody reads the frame any more, although its worker may not have
    // dropped it yet. Downstream gets unmapped memory and, when it was alone, a writable buffer.
    waiting.hold->release();
  }
  return leave(std::move(waiting));
}

InferStream::Output InferStream::leave(Waiting waiting) {
  for (const IdentityPtr& ended : waiting.ended) executor_->retire(ended->id);
  if (auto* event = std::get_if<EventPtr>(&waiting.item)) return std::move(*event);
  if (auto* query = std::get_if<QueryPtr>(&waiting.item)) return std::move(*query);
  if (auto* error = std::get_if<Error>(&waiting.item)) return std::move(*error);
  residency_.record(Clock::system().now() - waiting.arrived);
  auto& frame = std::get<Frame>(waiting.item);
  frame.analysis = std::move(waiting.analysis);
  return std::move(frame);
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
  }
  for (Waiting& waiting : dropped) {
    for (const IdentityPtr& identity : waiting.ended) executor_->retire(identity->id);
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
  stopped.ended.swap(ended_);
  stopped.current = identity_;
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
    executor_->cancel(identity->id, stopped.generation);
    executor_->retire(identity->id);
  }
  executor_->cancel(stopped.current->id, stopped.generation);
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
    stats.waiting = waiting_.size();
  }
  stats.held = budget_->held();
  stats.most_held = budget_->most_held();
  stats.residency_p50 = residency_.percentile(0.5);
  stats.residency_p99 = residency_.percentile(0.99);
  return stats;
}

}  // namespace penstock::gst
