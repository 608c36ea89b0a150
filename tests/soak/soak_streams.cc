// SPDX-License-Identifier: Apache-2.0
//
// soak streams: 32 live sources of one pipeline for ten minutes. Four of them stall, leave and join
// at random moments; the others have to keep their rate, and memory has to stay flat. Ends in a
// line for docs/soak.md.
#include <gst/gst.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gst/gst_ptr.h"
#include "gst/register.h"
#include "penstock/base/clock.h"
#include "penstock/base/str_format.h"
#include "tests/soak/footprint.h"
#include "tests/soak/soak_main.h"

namespace penstock {
namespace {

using gst::GstPtr;

constexpr guint kSteady = 28;
constexpr guint kUnruly = 4;
constexpr int kRate = 25;
constexpr double kSeconds = 600;
/// Of what a steady source sends by the clock, how much has to come out.
constexpr double kLeastPart = 0.97;
/// By how many seconds a live source may be behind when the test ends; it catches up.
constexpr double kAllowedLag = 0.5;
constexpr long kAllowedGrowthKiB = 4096;
/// GLib keeps threads that are done for some seconds, should they be needed again.
constexpr long kAllowedThreads = kUnruly;

/// A source that may be stalled, taken away and brought back.
struct Unruly {
  GstElement* bin = nullptr;  ///< The pipeline's; null while it is away.
  GstPad* mux_pad = nullptr;
  gulong block = 0;
};

class Soak {
 public:
  explicit Soak(std::uint32_t seed) : random_(seed) {}

  SoakVerdict run(double seconds);

 private:
  GstElement* add_source(guint number, GstPad** mux_pad);
  void upset();
  void join(guint which);
  void leave(Unruly& source);
  static void toggle_stall(Unruly& source);
  static void on_pad_added(GstElement* demux, GstPad* pad, gpointer data);
  bool watch(double seconds);
  SoakVerdict judge(double seconds, const Footprint& before, const Footprint& after);

  std::mt19937 random_;
  GstPtr<GstElement> pipeline_;
  GstElement* mux_ = nullptr;
  std::array<Unruly, kUnruly> unruly_;
  std::array<std::atomic<std::uint64_t>, kSteady + kUnruly> frames_{};
  std::uint64_t upsets_ = 0;
};

GstElement* Soak::add_source(guint number, GstPad** mux_pad) {
  GstElement* bin = gst_parse_bin_from_description(
      str_format("videotestsrc is-live=true pattern=black ! "
                 "capsfilter caps=video/x-raw,format=NV12,width=64,height=64,framerate={}/1",
                 kRate)
          .c_str(),
      TRUE, nullptr);
  gst_bin_add(GST_BIN(pipeline_.get()), bin);
  *mux_pad = gst_element_request_pad_simple(mux_, str_format("sink_{}", number).c_str());
  const GstPtr<GstPad> src(gst_element_get_static_pad(bin, "src"));
  if (*mux_pad == nullptr || gst_pad_link(src.get(), *mux_pad) != GST_PAD_LINK_OK) return nullptr;
  gst_element_sync_state_with_parent(bin);
  return bin;
}

void Soak::on_pad_added(GstElement*, GstPad* pad, gpointer data) {
  auto* self = static_cast<Soak*>(data);
  GstElement* sink = gst_element_factory_make("fakesink", nullptr);
  g_object_set(sink, "sync", FALSE, "async", FALSE, nullptr);
  gst_bin_add(GST_BIN(self->pipeline_.get()), sink);
  const GstPtr<GstPad> sink_pad(gst_element_get_static_pad(sink, "sink"));
  const auto number = std::size_t(std::atoi(GST_OBJECT_NAME(pad) + 4));  // "src_N"
  gst_pad_add_probe(
      sink_pad.get(), GST_PAD_PROBE_TYPE_BUFFER,
      [](GstPad*, GstPadProbeInfo*, gpointer count) {
        ++*static_cast<std::atomic<std::uint64_t>*>(count);
        return GST_PAD_PROBE_OK;
      },
      &self->frames_.at(number), nullptr);
  gst_element_sync_state_with_parent(sink);
  gst_pad_link(pad, sink_pad.get());
}

/// The pad is unlinked by now: the sink that has no peer any more was its.
void on_pad_removed(GstElement*, GstPad*, gpointer data) {
  auto* pipeline = static_cast<GstElement*>(data);
  std::vector<GstElement*> idle;
  GST_OBJECT_LOCK(pipeline);
  for (GList* child = GST_BIN(pipeline)->children; child != nullptr; child = child->next) {
    auto* element = GST_ELEMENT(child->data);
    if (!GST_OBJECT_FLAG_IS_SET(element, GST_ELEMENT_FLAG_SINK)) continue;
    auto* sink_pad = static_cast<GstPad*>(element->sinkpads->data);
    if (!gst_pad_is_linked(sink_pad)) idle.push_back(GST_ELEMENT(gst_object_ref(element)));
  }
  GST_OBJECT_UNLOCK(pipeline);
  for (GstElement* element : idle) {
    gst_element_set_state(element, GST_STATE_NULL);
    gst_bin_remove(GST_BIN(pipeline), element);
    gst_object_unref(element);
  }
}

void Soak::join(guint which) {
  Unruly& source = unruly_.at(which);
  source.bin = add_source(kSteady + which, &source.mux_pad);
}

void Soak::leave(Unruly& source) {
  gst_element_set_state(source.bin, GST_STATE_NULL);
  gst_bin_remove(GST_BIN(pipeline_.get()), source.bin);
  gst_element_release_request_pad(mux_, source.mux_pad);
  gst_object_unref(source.mux_pad);
  source = {};
}

void Soak::toggle_stall(Unruly& source) {
  const GstPtr<GstPad> src(gst_element_get_static_pad(source.bin, "src"));
  if (source.block != 0) {
    gst_pad_remove_probe(src.get(), source.block);
    source.block = 0;
    return;
  }
  source.block = gst_pad_add_probe(
      src.get(), GST_PAD_PROBE_TYPE_BLOCK_DOWNSTREAM,
      [](GstPad*, GstPadProbeInfo*, gpointer) { return GST_PAD_PROBE_OK; }, nullptr, nullptr);
}

void Soak::upset() {
  const guint which = guint(random_() % kUnruly);
  Unruly& source = unruly_.at(which);
  ++upsets_;
  if (source.bin == nullptr) return join(which);
  if (random_() % 2 == 0) return toggle_stall(source);
  leave(source);
}

/// Upsets a source every 20 to 400 ms; false when the pipeline said more than that it plays.
bool Soak::watch(double seconds) {
  const GstPtr<GstBus> bus(gst_element_get_bus(pipeline_.get()));
  Clock& clock = Clock::system();
  const auto length =
      std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(seconds));
  for (const TimePoint end = clock.now() + length; clock.now() < end;) {
    const GstClockTime pause = (20 + random_() % 380) * GST_MSECOND;
    const GstPtr<GstMessage> message(gst_bus_timed_pop_filtered(
        bus.get(), pause, static_cast<GstMessageType>(GST_MESSAGE_ERROR | GST_MESSAGE_EOS)));
    if (message != nullptr) {
      GError* error = nullptr;
      if (GST_MESSAGE_TYPE(message.get()) == GST_MESSAGE_ERROR) {
        gst_message_parse_error(message.get(), &error, nullptr);
      }
      std::printf("soak streams: %s\n", error != nullptr ? error->message : "an early end");
      g_clear_error(&error);
      return false;
    }
    upset();
  }
  return true;
}

SoakVerdict Soak::judge(double seconds, const Footprint& before, const Footprint& after) {
  double least = 1e9;
  for (guint i = 0; i < kSteady; ++i) {
    least = std::min(least, double(frames_.at(i).load()) / ((seconds - kAllowedLag) * kRate));
  }
  const long growth = after.rss_kib - before.rss_kib;
  const bool ok = least >= kLeastPart && growth < kAllowedGrowthKiB &&
                  after.threads <= before.threads + kAllowedThreads && after.fds == before.fds;
  return {.ok = ok,
          .told = str_format("28 steady and 4 unruly sources for {:.0f} s, {} upsets; steady ones "
                             "kept {:.1f} % of their rate or more, RSS grew {} KiB, fds {} -> {}, "
                             "threads {} -> {}",
                             seconds, upsets_, least * 100, growth, before.fds, after.fds,
                             before.threads, after.threads)};
}

SoakVerdict Soak::run(double seconds) {
  pipeline_.reset(GST_ELEMENT(gst_object_ref_sink(gst_pipeline_new("soak"))));
  mux_ = gst_element_factory_make("penmux", nullptr);
  GstElement* demux = gst_element_factory_make("pendemux", nullptr);
  gst_bin_add_many(GST_BIN(pipeline_.get()), mux_, demux, nullptr);
  gst_element_link(mux_, demux);
  g_signal_connect(demux, "pad-added", G_CALLBACK(on_pad_added), this);
  g_signal_connect(demux, "pad-removed", G_CALLBACK(on_pad_removed), pipeline_.get());
  std::vector<GstPad*> pads(kSteady);
  for (guint i = 0; i < kSteady; ++i) {
    if (add_source(i, &pads[i]) == nullptr) return {.ok = false, .told = "no source"};
  }
  gst_element_set_state(pipeline_.get(), GST_STATE_PLAYING);
  const auto settle = [&](double part) {
    const bool fine = watch(part);
    for (Unruly& source : unruly_) {
      if (source.bin != nullptr) leave(source);
    }
    return fine;
  };
  // The warm-up upsets as well, so that what is made once is made before it is counted.
  bool fine = settle(std::max(seconds / 10, 5.0));
  const Footprint before = footprint();
  for (auto& count : frames_) count = 0;
  const TimePoint begin = Clock::system().now();
  fine = fine && settle(seconds);
  const double taken = std::chrono::duration<double>(Clock::system().now() - begin).count();
  SoakVerdict verdict = judge(taken, before, footprint());
  gst_element_set_state(pipeline_.get(), GST_STATE_NULL);
  for (GstPad* pad : pads) {
    gst_element_release_request_pad(mux_, pad);
    gst_object_unref(pad);
  }
  verdict.ok = verdict.ok && fine;
  return verdict;
}

SoakVerdict soak(const SoakFlags& flags) {
  gst_init(nullptr, nullptr);
  if (!gst::register_elements(nullptr)) return {.ok = false, .told = "no penmux"};
  return Soak(flags.seed).run(std::max(kSeconds * flags.percent / 100, 4.0));
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  return penstock::soak_main(argc, argv,
                             {.name = "streams",
                              .what = "32 live sources, four of which stall, leave and join",
                              .soak = penstock::soak});
}
