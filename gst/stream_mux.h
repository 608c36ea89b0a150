// SPDX-License-Identifier: Apache-2.0
//
// StreamMux is what happens between penmux's pads: frames and events of any number of streams come
// in, each stream's on a thread of its own, and one thread takes containers with at most one frame
// of each. It knows no pads.
//
//   mux.add(3, "sink_3");                       // any thread, also while it runs
//   mux.push_frame(3, buffer);                  // stream 3's thread; waits for a place
//   while (auto output = mux.next()) { ... }    // the source pad's task
//   mux.interrupt(); ...; mux.restart();        // stop, start
//
// A container is due when every stream that is waited for has a frame, or when the first of its
// frames has waited for max_wait. Streams that are missing then are not waited for again until
// they deliver, so a source that is dead costs the others one max_wait in all.
#pragma once

#include <gst/gst.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "gst/batch_container.h"
#include "gst/gst_ptr.h"
#include "penstock/base/clock.h"

namespace penstock::gst {

class StreamMux {
 public:
  using Key = guint;

  struct Options {
    Nanoseconds max_wait{};       ///< How long a frame waits for frames of other streams.
    std::size_t queue_depth = 2;  ///< Frames of a stream that wait; then its thread does.
    bool stay_open = false;       ///< No end while there are no streams: others may come.
    Clock* clock = nullptr;       ///< Default: Clock::system().
  };

  /// What next() hands out: at least one stream, each with caps.
  struct Container {
    std::vector<ContainerStream> streams;
    GstClockTime running_time =
        GST_CLOCK_TIME_NONE;  ///< Smallest of its frames', never going back.
  };
  /// What a stream's thread asks of whoever takes the containers.
  struct Question {
    std::function<void()> ask;
    bool answered = false;  ///< The mux's.
  };
  using QuestionPtr = std::shared_ptr<Question>;
  struct End {};
  using Output = std::variant<Container, QuestionPtr, End>;

  struct Stats {
    guint streams = 0;       ///< That may still deliver.
    guint64 containers = 0;  ///< Handed out.
    guint64 partial = 0;     ///< Of those, how many lacked a stream that was waited for.
    guint64 frames = 0;      ///< Handed out.
    guint waiting = 0;       ///< Frames in the queues.
  };

  explicit StreamMux(const Options& options);
  StreamMux(const StreamMux&) = delete;
  StreamMux& operator=(const StreamMux&) = delete;

  // Any thread.

  /// `name` goes before the stream's id, which then is unique: "sink_3/...". Keys are never used
  /// again, names once their stream has been removed. False: the key is there already.
  bool add(Key key, std::string name);
  /// The stream ends behind what it has delivered; what it pushes now is refused.
  void remove(Key key);
  /// Drops what the stream has waiting; while it lasts, nothing of the stream is taken or awaited.
  void flush(Key key, bool begin);
  /// Wakes every thread; next() has nothing and pushes answer `flow`, until restart() or relink().
  void interrupt(GstFlowReturn flow = GST_FLOW_FLUSHING);
  /// What waited is gone, and with it the streams' events.
  void restart();
  /// Goes on where an interruption for want of a peer stopped. False: it was another.
  bool relink();
  GstFlowReturn flow() const;
  /// All streams have ended, so that no upstream will ever see why the flow has.
  bool all_ended() const;
  Stats stats() const;

  // The stream's thread.

  GstFlowReturn push_frame(Key key, BufferPtr frame);
  GstFlowReturn push_event(Key key, EventPtr event);
  /// Has the source pad's task call `question` between two containers; GST_FLOW_OK when it has. A
  /// flush of the stream and the end of the flow are other answers, and the call may still come:
  /// the question owns what it uses.
  GstFlowReturn ask(Key key, std::function<void()> question);

  // The source pad's task.

  std::optional<Output> next();
  /// `question` has been called.
  void answered(const QuestionPtr& question);

 private:
  struct Item {
    ObjectPtr object;
    TimePoint arrived;
  };
  struct Stream {
    std::string name;
    std::deque<Item> queue;
    std::size_t frames = 0;  ///< In the queue,
    std::size_t events = 0;  ///< and the rest of it.
    std::vector<EventPtr> sticky;
    GstSegment segment;
    bool has_caps = false;  ///< Were pushed.
    bool awaited = true;
    bool flushing = false;
    bool at_end = false;   ///< Its EOS was pushed.
    bool ended = false;    ///< Its EOS was taken.
    bool leaving = false;  ///< Its pad is gone.
  };

  Stream* find(Key key);
  GstFlowReturn refusal(const Stream* stream) const;
  void push(Stream& stream, ObjectPtr object);
  void drop(Stream& stream);
  std::optional<TimePoint> due() const;
  bool over() const;
  std::set<std::string> names_leaving() const;
  std::optional<Container> take();
  std::optional<ContainerStream> take_part(Stream& stream, GstClockTime& running_time);
  void take_objects(Stream& stream, std::vector<ObjectPtr>& objects, GstClockTime& running_time);
  ObjectPtr pop(Stream& stream);
  static void fold(Stream& stream, ObjectPtr state);

  const Options options_;
  Clock& clock_;

  mutable std::mutex mutex_;
  std::condition_variable filled_;  ///< For the taker,
  std::condition_variable room_;    ///< and for who pushes.
  std::uint64_t changes_ = 0;       ///< Counts what the taker has to look at.
  std::map<Key, Stream> streams_;
  std::deque<QuestionPtr> questions_;  ///< Not taken yet; at most one a stream's thread.
  bool had_streams_ = false;
  GstFlowReturn flow_ = GST_FLOW_FLUSHING;
  GstClockTime running_time_ = 0;
  Stats stats_;
};

}  // namespace penstock::gst
