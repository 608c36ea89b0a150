// SPDX-License-Identifier: Apache-2.0
//
// soak lifecycle: 10,000 pipelines, each of which starts, flushes, seeks, pauses and stops at
// random moments, some at the end of their sources, on `sim` also with a device call that fails.
// Each has to stop in time with at most one error of an element's own and, but for such a call,
// with none; and then all of it has to be gone: elements, memories, device, descriptors, threads
// (contracts L03, L04).
#include <gst/gst.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gst/gst_ptr.h"
#include "gst/register.h"
#include "gst/sharing.h"
#include "gst/sim/sim_elements.h"
#include "penstock/base/clock.h"
#include "penstock/base/str_format.h"
#include "penstock/memory/sim/sim_device.h"
#include "tests/soak/footprint.h"
#include "tests/soak/lifecycle_pipelines.h"
#include "tests/soak/soak_main.h"
#include "tests/soak/watchdog.h"

namespace penstock {
namespace {

using gst::GstPtr;

constexpr std::uint64_t kSequences = 10'000;
constexpr int kMostSteps = 10;
// A sanitizer slows everything down: what is to happen at a random moment needs longer, too.
#ifdef __SANITIZE_ADDRESS__
constexpr int kSlowness = 5;
#else
constexpr int kSlowness = 1;
#endif
constexpr GstClockTime kLongestWait = 6 * GST_MSECOND * kSlowness;
/// For a whole sequence; far beyond what any machine needs.
constexpr Nanoseconds kPatience = std::chrono::seconds(60 * kSlowness);
constexpr int kLatestFailure = 80;

/// What of a pipeline is alive. Counts outlive what is counted.
struct Alive {
  std::atomic<int> elements{0};
  std::atomic<int> memories{0};
  std::atomic<std::uint64_t> drawn{0};  ///< Frames, so far.
};
Alive alive;

void count_memory(GstMemory* memory) {
  static const GQuark counted = g_quark_from_static_string("soak-counted");
  GstMiniObject* object = GST_MINI_OBJECT_CAST(memory);
  if (gst_mini_object_get_qdata(object, counted) != nullptr) return;  // A pool's, again.
  ++alive.memories;
  gst_mini_object_set_qdata(object, counted, &alive, [](gpointer) { --alive.memories; });
}

GstPadProbeReturn count_memories(GstPad*, GstPadProbeInfo* info, gpointer draws) {
  GstBuffer* buffer = GST_PAD_PROBE_INFO_BUFFER(info);
  for (guint i = 0; i < gst_buffer_n_memory(buffer); ++i) {
    count_memory(gst_buffer_peek_memory(buffer, i));
  }
  if (draws != nullptr) ++alive.drawn;
  return GST_PAD_PROBE_OK;
}

void count_element(const GValue* value, gpointer) {
  auto* element = GST_ELEMENT(g_value_get_object(value));
  ++alive.elements;
  g_object_weak_ref(G_OBJECT(element), [](gpointer, GObject*) { --alive.elements; }, nullptr);
  GstElementFactory* factory = gst_element_get_factory(element);
  const std::string kind = factory == nullptr ? "" : GST_OBJECT_NAME(factory);
  if (kind != "videotestsrc" && kind != "simupload" && kind != "penwatermark") return;
  const GstPtr<GstPad> src(gst_element_get_static_pad(element, "src"));
  gst_pad_add_probe(src.get(), GST_PAD_PROBE_TYPE_BUFFER, count_memories,
                    kind == "penwatermark" ? &alive : nullptr, nullptr);
}

void count_all(GstElement* pipeline) {
  GstIterator* elements = gst_bin_iterate_recurse(GST_BIN(pipeline));
  gst_iterator_foreach(elements, count_element, nullptr);
  gst_iterator_free(elements);
}

/// Yields until `done`, as long as the watchdog lets it.
void await(Watchdog& watchdog, const std::string& what, const std::function<bool()>& done) {
  if (done()) return;
  watchdog.note("waits until " + what);
  while (!done()) std::this_thread::yield();
}

/// One pipeline from its making to its end.
class Sequence {
 public:
  Sequence(PipelineShape shape, bool on_sim, const LifecycleModels& models, std::mt19937& random,
           Watchdog& watchdog)
      : shape_(shape), on_sim_(on_sim), models_(models), random_(random), watchdog_(watchdog) {}

  /// Empty, or what is wrong.
  std::string run();

 private:
  bool make();
  void step();
  void set_state(GstState state);
  void seek(GstElement* source);
  void flush(GstElement* source);
  void wait();
  void take(GstMessage* message);
  void take_all();
  void let_go();

  int below(int limit) { return int(random_() % unsigned(limit)); }
  GstElement* any_source() { return made_.sources[std::size_t(below(int(made_.sources.size())))]; }

  const PipelineShape shape_;
  const bool on_sim_;
  const LifecycleModels& models_;
  std::mt19937& random_;
  Watchdog& watchdog_;
  std::shared_ptr<SimDevice> sim_;
  LifecyclePipeline made_;
  GstPtr<GstBus> bus_;
  bool fails_ = false;  ///< A device call does.
  bool stopping_ = false;
  std::vector<std::string> own_errors_, others_errors_;
};

bool Sequence::make() {
  made_ = make_lifecycle_pipeline(shape_, on_sim_ ? "sim" : "cpu", models_, random_);
  if (made_.pipeline == nullptr) return false;
  bus_.reset(gst_element_get_bus(made_.pipeline.get()));
  g_object_set(made_.pipeline.get(), "auto-flush-bus", FALSE, nullptr);
  count_all(made_.pipeline.get());
  if (!on_sim_) return true;
  sim_ = SimDevice::create({.seed = random_()});
  gst_element_set_context(made_.pipeline.get(), gst::make_device_context(sim_).get());
  fails_ = below(3) == 0;
  if (fails_) sim_->fail_call(1 + std::uint64_t(below(kLatestFailure)));
  return true;
}

void Sequence::set_state(GstState state) {
  take_all();
  watchdog_.note(gst_element_state_get_name(state));
  stopping_ = state <= GST_STATE_READY;
  const auto result = gst_element_set_state(made_.pipeline.get(), state);
  if (stopping_) take_all();
  stopping_ = false;
  if (result == GST_STATE_CHANGE_FAILURE && !fails_) {
    others_errors_.push_back(str_format("{} fails", gst_element_state_get_name(state)));
  }
}

void Sequence::take_all() {
  while (GstMessage* raw = gst_bus_pop(bus_.get())) {
    const GstPtr<GstMessage> message(raw);
    take(raw);
  }
}

void Sequence::seek(GstElement* source) {
  watchdog_.note("seek");
  // Without a flush GStreamer's sources wait for frames to go on, and so for ever in PAUSED.
  gst_element_seek(source, 1, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH, GST_SEEK_TYPE_SET,
                   gint64(below(100)) * GST_SECOND, GST_SEEK_TYPE_NONE, -1);
}

void Sequence::flush(GstElement* source) {
  watchdog_.note("flush");
  gst_element_send_event(source, gst_event_new_flush_start());
  wait();
  gst_element_send_event(source, gst_event_new_flush_stop(below(2) == 0 ? TRUE : FALSE));
}

void Sequence::wait() {
  if (below(2) == 0) return;
  Clock& clock = Clock::system();
  const TimePoint end =
      clock.now() + Nanoseconds(random_() % static_cast<std::uint32_t>(kLongestWait));
  for (TimePoint now = clock.now(); now < end; now = clock.now()) {
    const GstPtr<GstMessage> message(
        gst_bus_timed_pop(bus_.get(), GstClockTime((end - now).count())));
    if (message != nullptr) take(message.get());
  }
}

void Sequence::step() {
  switch (below(9)) {
    case 0:
      return set_state(GST_STATE_NULL);
    case 1:
      return set_state(GST_STATE_READY);
    case 2:
      return set_state(GST_STATE_PAUSED);
    case 3:
    case 4:
    case 5:
      return set_state(GST_STATE_PLAYING);
    case 6:
    case 7:
      return seek(any_source());
    default:
      return flush(any_source());
  }
}

void Sequence::take(GstMessage* message) {
  if (GST_MESSAGE_TYPE(message) != GST_MESSAGE_ERROR) return;
  GError* error = nullptr;
  gst_message_parse_error(message, &error, nullptr);
  std::string text = error->message;
  g_error_free(error);
  // What every element with a thread says whose frames are refused: not why, and by whom it is
  // said depends on who is there. Elements whose peers stop before them say it of events that they
  // can't hand on any more.
  const GstStructure* details = nullptr;
  gst_message_parse_error_details(message, &details);
  int flow = 0;
  const bool of_flow =
      details != nullptr && gst_structure_get_int(details, "flow-return", &flow) != FALSE;
  if (of_flow) text = gst_flow_get_name(static_cast<GstFlowReturn>(flow));
  if (of_flow && stopping_) return;
  (of_flow ? others_errors_ : own_errors_)
      .push_back(str_format("{}: {}", GST_MESSAGE_SRC_NAME(message), text));
}

void Sequence::let_go() {
  set_state(GST_STATE_NULL);
  watchdog_.note("is let go of");
  bus_.reset();
  made_ = {};
  await(watchdog_, "elements are gone", [] { return alive.elements == 0; });
  await(watchdog_, "memories are gone", [] { return alive.memories == 0; });
  if (sim_ == nullptr) return;
  sim_->wait_idle();
  await(watchdog_, "storages are gone", [this] { return sim_->live_storages() == 0; });
  const std::weak_ptr<SimDevice> device = sim_;
  sim_.reset();
  await(watchdog_, "the device is gone", [&] { return device.expired(); });
}

std::string Sequence::run() {
  watchdog_.note(str_format("{} on {}", to_string(shape_), on_sim_ ? "sim" : "cpu"));
  if (!make()) return "the pipeline can't be made";
  if (fails_) watchdog_.note("a call fails");
  set_state(below(2) == 0 ? GST_STATE_PLAYING : GST_STATE_PAUSED);
  for (int steps = 1 + below(kMostSteps); steps > 0; --steps) {
    wait();
    step();
  }
  wait();
  let_go();
  if (own_errors_.size() > (fails_ ? 1u : 0u)) {
    return str_format("{} errors, '{}' is the last", own_errors_.size(), own_errors_.back());
  }
  if (!fails_ && !others_errors_.empty()) return others_errors_.front();
  return {};
}

class Soak {
 public:
  explicit Soak(const SoakFlags& flags) : flags_(flags), watchdog_(kPatience) {}

  SoakVerdict run();

 private:
  std::string perform(std::uint64_t number, const std::string& part);
  /// Every shape on both devices, so that what is made once is made before it is counted.
  std::string warm_up();

  const SoakFlags flags_;
  const LifecycleModels models_;
  Watchdog watchdog_;
  Footprint base_;
  std::array<std::uint64_t, kShapes> drawn_{};
};

std::string Soak::perform(std::uint64_t number, const std::string& part) {
  watchdog_.begin(part);
  std::seed_seq seeds{std::uint64_t{flags_.seed}, number};
  std::mt19937 random(seeds);
  const auto shape = int(number % kShapes);
  const std::uint64_t before = alive.drawn;
  Sequence sequence(static_cast<PipelineShape>(shape), number / kShapes % 2 == 1, models_, random,
                    watchdog_);
  std::string wrong = sequence.run();
  drawn_[std::size_t(shape)] += alive.drawn - before;
  return wrong;
}

std::string Soak::warm_up() {
  for (std::uint64_t i = 0; i < 4 * kShapes; ++i) {
    const std::string wrong = perform(kSequences * 1000 + i, str_format("warm-up {}", i));
    if (!wrong.empty()) return str_format("{}: {}", watchdog_.part(), wrong);
  }
  g_thread_pool_stop_unused_threads();
  base_ = footprint();
  drawn_ = {};
  return {};
}

SoakVerdict Soak::run() {
  if (std::string wrong = warm_up(); !wrong.empty()) return {.ok = false, .told = wrong};
  const auto sequences = std::max<std::uint64_t>(
      2 * kShapes, static_cast<std::uint64_t>(double(kSequences) * flags_.percent / 100));
  Footprint now;
  for (std::uint64_t n = flags_.first; n < sequences; ++n) {
    const std::string wrong =
        perform(n, str_format("sequence {} (--seed {} --first {})", n, flags_.seed, n));
    // GLib keeps threads that are done, should they be needed again.
    await(watchdog_, "threads and descriptors are gone", [&] {
      g_thread_pool_stop_unused_threads();
      now = footprint();
      return now.threads <= base_.threads && now.fds <= base_.fds;
    });
    if (!wrong.empty()) {
      return {.ok = false, .told = str_format("{}: {}", watchdog_.part(), wrong)};
    }
  }
  std::string drawn;
  for (int shape = 0; shape < kShapes; ++shape) {
    drawn += str_format("{}{} {}", drawn.empty() ? "" : ", ",
                        to_string(static_cast<PipelineShape>(shape)), drawn_[std::size_t(shape)]);
  }
  // A hundredth of them may be over too soon for one of the shapes.
  const bool any_drawn = std::ranges::any_of(drawn_, [](std::uint64_t count) { return count > 0; });
  return {.ok = any_drawn || flags_.first > 0,
          .told = str_format("{} sequences, frames drawn: {}; RSS {} -> {} KiB, {} fds, {} threads",
                             sequences - std::min(sequences, flags_.first), drawn, base_.rss_kib,
                             now.rss_kib, now.fds, now.threads)};
}

SoakVerdict soak(const SoakFlags& flags) {
  // A scan of the plugin path would load plugins whose types are those of this program.
  g_unsetenv("GST_PLUGIN_PATH");
  gst_init(nullptr, nullptr);
  if (!gst::register_elements(nullptr) || !gst::register_sim_elements(nullptr)) {
    return {.ok = false, .told = "GStreamer refuses penstock's elements"};
  }
  return Soak(flags).run();
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  return penstock::soak_main(argc, argv,
                             {.name = "lifecycle",
                              .what = "10,000 pipelines that start, flush, seek and stop at random",
                              .soak = penstock::soak,
                              .parts = "sequences"});
}
