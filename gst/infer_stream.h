// SPDX-License-Identifier: Apache-2.0
//
// InferStream is what happens between peninfer's pads: frames are submitted to the executor as they
// come, wait for their results in the order in which they came, and leave with them; events and
// serialized queries keep their place between them. A container of several streams' frames leaves
// when all of them are ready. It knows no pads: one thread pushes (the sink pad's), one takes (the
// source pad's task), any thread interrupts.
//
//   stream.push_frame(buffer, format);           // sink pad; waits for a place in the budget
//   while (auto output = stream.next()) { ... }  // source pad's task
//   stream.interrupt(); ...; stream.resume();    // flush, or stop
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <variant>
#include <vector>

#include "gst/frame_budget.h"
#include "gst/frame_requests.h"
#include "gst/frame_task.h"
#include "gst/gst_ptr.h"
#include "gst/infer_sources.h"
#include "gst/run_time.h"
#include "gst/stream_container.h"
#include "penstock/exec/batch_executor.h"
#include "penstock/observe/latency.h"

namespace penstock::gst {

class InferStream {
 public:
  struct Options {
    std::shared_ptr<SharedBatchExecutor> executor;
    DeviceId device;
    std::size_t frame_limit = 1;  ///< Frames of a stream held; more may wait for their place.
    guint interval = 1;           ///< Every interval-th frame of a stream is inferred.
    std::uint32_t lanes = 1;      ///< On which regions of a frame are submitted.
    std::function<std::shared_ptr<FrameTasks>()> make_tasks = [] { return whole_frame_tasks({}); };
    std::shared_ptr<RegionCounts> counts = std::make_shared<RegionCounts>();
  };

  /// A frame that has been analysed, and what is to be put onto it.
  struct Analysed {
    FramePlace place;
    std::unique_ptr<FrameTask> task;
  };
  struct Frame {
    BufferPtr buffer;                ///< Or container.
    std::vector<Analysed> analysed;  ///< Of its frames; the others pass without inference.
  };
  /// A serialized query whose turn it is; to be given back with finish().
  struct Query {
    GstQuery* query = nullptr;
    bool taken = false;
    bool done = false;
    bool answered = false;
  };
  using QueryPtr = std::shared_ptr<Query>;
  /// An Error came in the place of its frame. The caller reports it and then calls end(), in that
  /// order, so that upstream hears of the flow only when the reason is on the bus.
  using Output = std::variant<Frame, EventPtr, QueryPtr, Error>;

  struct Stats {
    guint64 frames = 0;    ///< Accepted, each frame of a container.
    guint64 inferred = 0;  ///< Left with a result.
    guint64 unusable = 0;  ///< Results that said nothing, InferenceResult::unusable.
    guint64 objects = 0;   ///< Regions that were asked for, and what RegionCounts has beside.
    guint64 objects_kept = 0;
    guint64 objects_left_out = 0;
    std::size_t streams = 0;
    std::size_t waiting = 0;
    std::size_t held = 0;  ///< Of the stream that has most in each container.
    std::size_t most_held = 0;
    Nanoseconds residency_p50{};  ///< From entering the element to being ready to leave.
    Nanoseconds residency_p99{};
  };

  explicit InferStream(const Options& options);
  InferStream(const InferStream&) = delete;
  InferStream& operator=(const InferStream&) = delete;
  /// Interrupts; does not wait for running jobs, which keep what they use.
  ~InferStream();

  // The sink pad's streaming thread.

  /// A frame, or a container. Blocks while the budget is used up. What can't be read or submitted
  /// is an Error in its place: this blocks until it has left, behind the frames before it, and
  /// answers GST_FLOW_ERROR.
  GstFlowReturn push_frame(BufferPtr buffer, const InputFormat& format);
  /// As GstQueue: while flow() is not OK, sticky events other than EOS are taken and kept for
  /// resume(), and the rest is refused with the flow, so that upstream hears downstream's reason
  /// and not an error of its own event.
  GstFlowReturn push_event(EventPtr event);
  /// Blocks until the taker has answered; false also when interrupted before its turn.
  bool run_query(GstQuery* query);

  // The source pad's task.

  /// The next thing to send on, waiting for its result. Nothing when flow() is not OK.
  std::optional<Output> next();
  void finish(const QueryPtr& query, bool answered);
  /// Downstream refused a frame. EOS: it wants none until a new segment, so frames are dropped and
  /// refused until then, and events still leave. Anything else ends the flow with that reason. True
  /// when upstream has sent EOS already and so will never see the reason.
  bool end(GstFlowReturn reason);

  // Any thread.

  /// Drops what is queued, cancels what runs, wakes both threads; returns without waiting for jobs.
  void interrupt();
  enum class After { kFlush, kLink };
  /// Starts the next generation; a stream whose failure was claimed stays ended. Returns the sticky
  /// events that were dropped since the last time, latest last: upstream sends them only once, so
  /// they are to be stored on the source pad before anything of the new generation leaves. A flush
  /// ends the segment, so it is among them only after a link. Nothing when a link came that the
  /// flow had not waited for.
  [[nodiscard]] std::optional<std::vector<EventPtr>> resume(After what);
  GstFlowReturn flow() const;
  /// True for the first caller in the stream's life, who posts its one error: both threads may
  /// fail. From then on the stream can end, but not begin again.
  bool claim_failure();
  Stats stats() const;
  /// Why the first result of the stream that said nothing did not; once.
  std::optional<Error> take_unusable();
  /// Of a frame, from its submission to its result; zero before the first.
  Nanoseconds run_time() const { return run_time_.told(); }
  /// True once after run_time() has changed.
  bool take_run_time_change() { return run_time_changed_.exchange(false); }

 private:
  using Futures = std::vector<SharedBatchExecutor::Future>;

  struct Waiting {
    Output item;
    std::vector<FrameRequests> running;
    Futures futures;  ///< Of all that is running.
    FrameBudget::Lease lease;
    TimePoint arrived;
    std::vector<IdentityPtr> ended;  ///< Identities with no frame behind this item.
  };
  /// Where frames are in the stream's life, for what is told to the executor without the lock.
  struct Moment {
    Generation generation = 0;
    guint64 epoch = 0;
    std::vector<InferSources::Ticket> tickets;  ///< One a frame.
  };

  void admit(const Arrived& arrived, Moment& moment);
  GstFlowReturn enqueue(Waiting waiting, guint64 epoch);
  GstFlowReturn enqueue_failure(Error error);
  /// What a stop leaves to be let go of without the lock.
  struct Stopped {
    std::deque<Waiting> dropped;
    std::vector<IdentityPtr> ended;
    std::vector<IdentityPtr> current;
    Generation generation = 0;
  };
  Stopped stop(GstFlowReturn flow);
  void let_go(Stopped stopped);
  void keep_sticky(EventPtr event);
  void note_stream_start(GstEvent* event);
  void drop_frames_until_pushable();
  void cancel(const Identity& identity, Generation generation);
  void retire(const Identity& identity);
  void note_unusable(const std::string& why);
  Result<void> conclude(Waiting& waiting, std::vector<Result<InferenceResult>> results);
  Output leave(Waiting waiting);

  const std::shared_ptr<SharedBatchExecutor> executor_;
  const DeviceId device_;
  const guint interval_;
  const std::shared_ptr<FrameBudget> budget_;
  const std::shared_ptr<const RegionCounts> counts_;
  LatencyHistogram residency_;
  RunTime run_time_;  ///< Source pad's task.
  std::atomic<bool> run_time_changed_{false};
  ArrivalReader reader_;  ///< Sink pad's thread.

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  std::size_t waiting_events_ = 0;
  std::vector<EventPtr> sticky_;  ///< Dropped, and due to be stored on the source pad.
  GstFlowReturn flow_ = GST_FLOW_FLUSHING;
  bool failed_ = false;         ///< Somebody posts, or has posted, the stream's error.
  bool eos_ = false;            ///< From upstream.
  bool wants_no_more_ = false;  ///< Downstream answered EOS: no frames before a new segment.
  Generation generation_ = 0;
  guint64 epoch_ = 0;         ///< Counts interruptions, to notice one that came and went.
  guint64 links_ = 0;         ///< Counts new links of the source pad,
  guint64 links_before_ = 0;  ///< and as it was when the last output was taken.
  guint64 frames_ = 0;
  guint64 inferred_ = 0;
  guint64 unusable_ = 0;
  std::optional<Error> first_unusable_;
  InferSources sources_;
};

}  // namespace penstock::gst
