// SPDX-License-Identifier: Apache-2.0
//
// BranchJoin is what happens between penaggregate's pads: frames of one stream come in on several
// ways, each way's on a thread of its own, and one thread takes the frames of the primary way, each
// with the branches' frames of the same time. It knows no pads, and nothing of metadata.
//
//   join.add({.key = 0, .name = "sink_0", .primary = true});
//   join.push_frame(0, buffer);                  // the pad's thread; waits for a place
//   while (auto output = join.next()) { ... }    // the source pad's task
//   join.stop(GST_FLOW_FLUSHING);
//
// A primary frame leaves when every branch has given its frame, or is known to have left it out:
// it is ahead, says gap or end there, or has not delivered for max_wait. docs/design/aggregate.md
// has the rules.
#pragma once

#include <gst/gst.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "gst/gst_ptr.h"
#include "penstock/base/clock.h"
#include "penstock/base/error.h"

namespace penstock::gst {

class BranchJoin {
 public:
  using Key = guint;
  /// What a frame comes to that a branch left out.
  enum class Missing {
    kError,
    kPass,  ///< It goes without, and is counted.
  };
  struct Options {
    Nanoseconds max_wait{};
    std::size_t queue_depth = 1;  ///< Frames of a pad that wait; then its thread does.
    Missing missing = Missing::kError;
    Clock* clock = nullptr;  ///< Default: Clock::system().
  };
  struct Pad {
    Key key = 0;  ///< Never used again.
    std::string name;
    bool primary = false;
    /// Awaited before it has delivered anything; others are from their first frame on.
    bool from_start = false;
  };

  /// A frame, and what its pad has said of it.
  struct Frame {
    std::string pad;
    BufferPtr buffer;
    int width = 0, height = 0;
  };
  struct Joined {
    Frame primary;
    std::vector<Frame> branches;  ///< In the order of the pads' keys.
  };
  /// A serialized query of the primary pad whose turn it is; to be given back with finish().
  struct Query {
    GstQuery* query = nullptr;
    bool taken = false;
    bool done = false;
    bool answered = false;
  };
  using QueryPtr = std::shared_ptr<Query>;
  /// Events are the primary pad's. After an Error, which comes once, the caller reports it and then
  /// calls fail().
  using Output = std::variant<Joined, EventPtr, QueryPtr, Error>;

  struct Stats {
    guint64 frames = 0;   ///< That left.
    guint64 joined = 0;   ///< Branches' frames that left with them.
    guint64 missing = 0;  ///< Frames that branches left out, each branch's.
    guint64 late = 0;     ///< Branches' frames whose primary one had left.
    guint waiting = 0;    ///< Frames in the queues.
  };

  explicit BranchJoin(const Options& options);
  BranchJoin(const BranchJoin&) = delete;
  BranchJoin& operator=(const BranchJoin&) = delete;

  // Any thread.

  void add(Pad pad);
  /// A branch is not awaited any more, but what it has delivered is. The primary's stream ends.
  void remove(Key key);
  /// Drops what the pad has waiting. While the primary flushes, next() has nothing.
  void begin_flush(Key key);
  /// Of the primary, events that were dropped and are to be stored on the source pad.
  std::vector<EventPtr> end_flush(Key key);
  /// Drops everything; next() has nothing and pushes answer `flow`, until restart() or relink(), or
  /// a flush of the primary pad.
  void stop(GstFlowReturn flow);
  /// For good, until restart().
  void fail();
  void restart();
  /// Goes on where a stop for want of a peer was; what end_flush() returns. Nothing: there was
  /// none.
  std::optional<std::vector<EventPtr>> relink();
  /// max_wait counts while it plays, and before that until the first frame is out.
  void set_playing(bool playing);
  /// max_wait counts from a frame's arrival, as live latency does; else from when it is the oldest.
  void set_live(bool live);
  GstFlowReturn flow() const;
  bool runs() const;  ///< next() waits or has something.
  /// The primary's stream has ended, so that its upstream will never see why the flow has.
  bool has_ended() const;
  Stats stats() const;

  // The pad's thread.

  GstFlowReturn push_frame(Key key, BufferPtr frame);
  GstFlowReturn push_event(Key key, EventPtr event);
  /// Of the primary. Blocks until the taker has answered; false also when stopped before its turn.
  bool run_query(Key key, GstQuery* query);

  // The source pad's task.

  std::optional<Output> next();
  void finish(const QueryPtr& query, bool answered);

 private:
  /// A stream of a pad, and the one that it had before.
  struct Stream {
    std::string id;
    std::optional<std::string> before;
  };
  /// Where something is in its stream.
  struct Position {
    std::shared_ptr<const Stream> stream;
    std::int64_t running_time = 0;
  };
  struct Timed {
    Position position;
    Frame frame;
    TimePoint arrived;
  };
  struct Gap {
    Position position;
    std::int64_t end = 0;  ///< Running time.
  };
  struct End {};
  /// End is a branch's; a primary's is an event.
  using Item = std::variant<Timed, Gap, EventPtr, QueryPtr, Error, End>;
  struct Way {
    Pad pad;
    std::deque<Item> queue;
    std::size_t frames = 0;  ///< In the queue.
    // As last pushed:
    GstSegment segment;
    std::shared_ptr<const Stream> stream;
    int width = 0, height = 0;
    bool at_end = false;
    bool broken = false;  ///< Takes no more: its last item is an error.
    bool begun = false;   ///< Has delivered a frame.
    // As taken:
    bool joining = false;  ///< It came on the way, and no frame of it has left yet.
    bool awaited = true;   ///< Not since max_wait was spent on it.
    bool leaving = false;  ///< Its pad is gone.
    bool flushing = false;
    std::optional<Position> excused;  ///< Of the last frame that left without it.
  };
  /// How a branch's head is to a frame.
  enum class Order { kBehind, kSame, kAhead, kOtherSource, kOtherPts };
  /// What a branch has for a frame.
  enum class Answer { kFrame, kWait, kLeftOut, kNotThere };
  struct Verdict {
    std::vector<Way*> with, without, waiting;
    guint left_out = 0;  ///< Of those without.
  };

  // Queues: branch_join.cc and branch_join_push.cc.
  Way* find(Key key);
  Way* primary();
  GstFlowReturn refusal(const Way* way) const;
  bool has_room(const Way& way) const;
  void push(Way& way, Item item);
  void drop(Way& way);
  void drop_branches();
  void end(Way& way);
  void keep_sticky(EventPtr event);
  Item item_of(Way& way, BufferPtr buffer) const;
  Result<void> note(Way& way, GstEvent* event);
  void push_primary(Way& way, EventPtr event);
  void push_branch(Way& way, GstEvent* event);
  Output leave(Way& way);
  Joined take(Way& way, const Verdict& verdict);
  Output broken(Error error);
  void forget_gone();
  std::vector<EventPtr> take_sticky();
  void notify();

  // What leaves with what: branch_join_rules.cc.
  std::optional<Error> first_error() const;
  static Order order(const Item& head, const Timed& frame);
  static bool is_late(const Way& way, const Position& head);
  Result<Answer> answer(Way& way, const Timed& frame);
  Result<Verdict> judge(const Timed& frame);
  std::optional<TimePoint> deadline(TimePoint arrived) const;
  Result<void> give_up(const Verdict& verdict, const Timed& frame);
  /// When the primary has let a branch's frame wait too long.
  Result<TimePoint> watch_primary();

  const Options options_;
  Clock& clock_;

  mutable std::mutex mutex_;
  std::condition_variable filled_;  ///< For the taker,
  std::condition_variable room_;    ///< and for who pushes.
  std::uint64_t changes_ = 0;       ///< Counts what the taker has to look at.
  std::uint64_t epoch_ = 0;         ///< Counts what drops the primary's queue.
  std::map<Key, Way> ways_;
  std::vector<EventPtr> sticky_;  ///< The primary's that were dropped, and are still in force.
  GstFlowReturn flow_ = GST_FLOW_FLUSHING;
  bool failed_ = false;
  bool ended_ = false;  ///< The primary's end was taken.
  bool playing_ = false;
  bool live_ = false;
  bool has_left_ = false;      ///< A frame, since the start or a flush.
  TimePoint playing_since_{};  ///< Or since the start.
  TimePoint asked_{};          ///< When the taker last came.
  Stats stats_;
};

}  // namespace penstock::gst
