// SPDX-License-Identifier: Apache-2.0
#include "bench/limit_run.h"

#include <gst/app/gstappsink.h>
#include <gst/gst.h>
#include <gst/video/video.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/playing.h"
#include "bench/raw_inference.h"
#include "bench/report.h"
#include "gst/gst_ptr.h"
#include "penstock/base/str_format.h"
#include "penstock/base/usable_cores.h"
#include "penstock/model/manifest.h"

namespace penstock::bench {
namespace {

using gst::GstPtr;

// With this reply libav's decoders copy no frame (`./dev bench allocation`); with another the limit
// would be no limit.
gboolean offer_video_meta(GstAppSink*, GstQuery* query, gpointer) {
  gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
  return TRUE;
}

/// Decoders that a finished run takes a frame of, each in its turn. Thread-safe once open.
class Decoders {
 public:
  Result<void> open(const Task& task, int streams) {
    wanted_ = task.frames * streams;
    for (int i = 0; i < streams; ++i) PENSTOCK_TRY(add(task));
    gst_element_set_state(pipeline_.get(), GST_STATE_PLAYING);
    return {};
  }
  /// A sample less is inference that nothing was decoded for: a limit that is none.
  Result<void> take(int number) {
    GstAppSink* sink = sinks_[std::size_t(number) % sinks_.size()];
    const GstPtr<GstSample> sample(gst_app_sink_try_pull_sample(sink, 10 * GST_SECOND));
    if (sample != nullptr) {
      taken_.fetch_add(1);
      return {};
    }
    return fail(ErrorKind::kCorrupt,
                str_format("the decoders gave {} of {} frames: {}", taken_.load(), wanted_,
                           error_of(pipeline_.get()).value_or("the clip ends there, or hangs")));
  }
  int taken() const { return taken_; }

 private:
  Result<void> add(const Task& task) {
    GstElement* decoder = make_clip_decoder(task);
    GstElement* sink = gst_element_factory_make("appsink", nullptr);
    for (GstElement* element : {decoder, sink}) {
      if (element != nullptr) gst_bin_add(GST_BIN(pipeline_.get()), element);
    }
    if (decoder == nullptr || sink == nullptr || !gst_element_link(decoder, sink)) {
      return fail(ErrorKind::kUnsupported, "no decoder or appsink");
    }
    g_object_set(sink, "sync", FALSE, "async", FALSE, "max-buffers", 1u, "enable-last-sample",
                 FALSE, nullptr);
    GstAppSinkCallbacks callbacks = {};
    callbacks.propose_allocation = offer_video_meta;
    gst_app_sink_set_callbacks(GST_APP_SINK(sink), &callbacks, nullptr, nullptr);
    sinks_.push_back(GST_APP_SINK(sink));
    return {};
  }

  PipelinePtr pipeline_{gst_pipeline_new(nullptr)};
  std::vector<GstAppSink*> sinks_;
  std::atomic<int> taken_{0};
  int wanted_ = 0;
};

}  // namespace

Result<Effort> perform_limit(const Task& task, int streams) {
  auto manifest = load_manifest(task.manifest);
  if (!manifest) return std::unexpected(manifest.error());
  const int workers = usable_cores();
  auto raw = RawInference::open(library_or_default(task.library), *manifest, workers);
  if (!raw) return std::unexpected(raw.error());
  Decoders decoders;
  PENSTOCK_TRY(decoders.open(task, streams));
  PENSTOCK_TRY(decoders.take(0));
  const int frames = task.frames * streams;
  const Watch watch;
  std::atomic<int> started{0};
  std::mutex mutex;
  std::optional<Error> error;
  const auto work = [&](int worker) -> Result<void> {
    for (int n = started.fetch_add(1); n < frames; n = started.fetch_add(1)) {
      PENSTOCK_TRY((*raw)->run(worker));
      // The first frame was taken before the watch.
      if (n > 0) PENSTOCK_TRY(decoders.take(n));
    }
    return {};
  };
  std::vector<std::thread> threads;
  for (int w = 0; w < workers; ++w) {
    threads.emplace_back([&, w] {
      auto done = work(w);
      if (done) return;
      started = frames;
      const std::lock_guard lock(mutex);
      if (!error) error = done.error();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Effort effort = watch.stop(decoders.taken());
  if (error) return std::unexpected(*error);
  return effort;
}

}  // namespace penstock::bench
