// SPDX-License-Identifier: Apache-2.0
#include "bench/streams_run.h"

#include <gst/gst.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "bench/ideal_queue.h"
#include "bench/limit_run.h"
#include "bench/playing.h"
#include "gst/gst_ptr.h"
#include "gst/penanalysis_meta.h"
#include "gst/register.h"
#include "penstock/base/str_format.h"
#include "penstock/base/usable_cores.h"
#include "penstock/observe/latency.h"

namespace penstock::bench {
namespace {

using gst::GstPtr;

long peak_rss_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::atol(line.c_str() + 6);
  }
  return 0;
}

/// CPU time of all processes, and what a host took away from this machine.
Nanoseconds machine_cpu() {
  std::ifstream file("/proc/stat");
  std::string name;
  long long user = 0, nice = 0, system = 0, idle = 0, io = 0, irq = 0, softirq = 0, steal = 0;
  file >> name >> user >> nice >> system >> idle >> io >> irq >> softirq >> steal;
  const long long ticks = user + nice + system + irq + softirq + steal;
  return std::chrono::seconds(1) * ticks / ::sysconf(_SC_CLK_TCK);
}

GstElement* make_element(const char* factory, GstElement* pipeline) {
  GstElement* element = gst_element_factory_make(factory, nullptr);
  if (element != nullptr) gst_bin_add(GST_BIN(pipeline), element);
  return element;
}

/// What is measured of all streams; made before the pipeline and gone after it.
class Watched {
 public:
  explicit Watched(const StreamsTask& task) : task_(task) {}

  void frame_came(GstClockTime time, std::map<GstClockTime, TimePoint>& came) {
    const std::lock_guard lock(mutex_);
    if (!watch_) {
      machine_at_start_ = machine_cpu();
      watch_.emplace();
    }
    came[time] = Clock::system().now();
  }
  void frame_left(GstBuffer* buffer, std::map<GstClockTime, TimePoint>& came) {
    const std::lock_guard lock(mutex_);
    const auto entry = came.find(GST_BUFFER_PTS(buffer));
    const gst::Analysis* analysis = gst::read_analysis(buffer);
    if (entry == came.end() || analysis == nullptr) return;
    ++frames_;
    runs_.record(analysis->times.infer);
    const StageTimes& times = analysis->times;
    arrivals_.push_back({.at = entry->second,
                         .work = times.preprocess + times.infer + times.decode,
                         .counts = analysis->result.frame > 0});
    // The first ones come while the engine lays out its memory.
    if (analysis->result.frame > 0) latency_.record(Clock::system().now() - entry->second);
    came.erase(entry);
  }
  Result<StreamsEffort> result() const {
    const std::lock_guard lock(mutex_);
    if (!watch_) return fail(ErrorKind::kDevice, "no frame came");
    const Effort effort = watch_->stop(frames_);
    const Nanoseconds others = machine_cpu() - machine_at_start_ - effort.cpu;
    return StreamsEffort{.effort = effort,
                         .peak_rss_kib = peak_rss_kib(),
                         .latency_p95 = latency_.percentile(0.95),
                         .run_p50 = runs_.percentile(0.5),
                         .ideal_p95 = ideal_queue_p95(arrivals_, std::size_t(usable_cores())),
                         .others_cores = double(others.count()) / double(effort.wall.count())};
  }
  const StreamsTask& task() const { return task_; }

 private:
  const StreamsTask& task_;
  mutable std::mutex mutex_;
  std::optional<Watch> watch_;
  Nanoseconds machine_at_start_{};
  int frames_ = 0;
  LatencyHistogram latency_;
  LatencyHistogram runs_;
  std::vector<Arrival> arrivals_;
};

/// One of the streams, for its pads' probes.
struct Stream {
  Watched* watched = nullptr;
  int number = 0;
  int frames = 0;
  std::map<GstClockTime, TimePoint> came;
};

/// Cameras are not synchronised: each stream's frames are spread evenly between the others'.
GstPadProbeReturn set_time(GstPad*, GstPadProbeInfo* info, gpointer data) {
  auto& stream = *static_cast<Stream*>(data);
  const StreamsTask& task = stream.watched->task();
  GstBuffer* buffer = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
  GST_PAD_PROBE_INFO_DATA(info) = buffer;
  const double number = double(stream.frames++) * task.streams + stream.number;
  GST_BUFFER_PTS(buffer) = GstClockTime(number / task.rate * GST_SECOND);
  GST_BUFFER_DTS(buffer) = GST_CLOCK_TIME_NONE;
  return GST_PAD_PROBE_OK;
}

GstPadProbeReturn note_arrival(GstPad*, GstPadProbeInfo* info, gpointer data) {
  auto& stream = *static_cast<Stream*>(data);
  stream.watched->frame_came(GST_BUFFER_PTS(GST_PAD_PROBE_INFO_BUFFER(info)), stream.came);
  return GST_PAD_PROBE_OK;
}

GstPadProbeReturn note_leaving(GstPad*, GstPadProbeInfo* info, gpointer data) {
  auto& stream = *static_cast<Stream*>(data);
  stream.watched->frame_left(GST_PAD_PROBE_INFO_BUFFER(info), stream.came);
  return GST_PAD_PROBE_OK;
}

void probe(GstElement* element, const char* pad_name, GstPadProbeCallback callback,
           Stream& stream) {
  const GstPtr<GstPad> pad(gst_element_get_static_pad(element, pad_name));
  gst_pad_add_probe(pad.get(), GST_PAD_PROBE_TYPE_BUFFER, callback, &stream, nullptr);
}

Result<void> add_stream(GstElement* pipeline, const StreamsTask& task, Stream& stream) {
  GstElement* decoder = make_clip_decoder(task.clip);
  if (decoder != nullptr) gst_bin_add(GST_BIN(pipeline), decoder);
  GstElement* pace = make_element(task.rate > 0 ? "clocksync" : "identity", pipeline);
  GstElement* infer = make_element("peninfer", pipeline);
  GstElement* sink = make_element("fakesink", pipeline);
  if (decoder == nullptr || pace == nullptr || infer == nullptr || sink == nullptr) {
    return fail(ErrorKind::kUnsupported, "no decoder, clocksync, peninfer or fakesink");
  }
  g_object_set(infer, "model", task.clip.manifest.c_str(), "model-instance", "bench", nullptr);
  if (!task.clip.library.empty()) {
    g_object_set(infer, "engine-library", task.clip.library.c_str(), nullptr);
  }
  g_object_set(sink, "sync", FALSE, "async", FALSE, "enable-last-sample", FALSE, nullptr);
  if (!gst_element_link_many(decoder, pace, infer, sink, nullptr)) {
    return fail(ErrorKind::kUnsupported, "cannot link a stream");
  }
  if (task.rate > 0) probe(decoder, "src", set_time, stream);
  probe(infer, "sink", note_arrival, stream);
  probe(infer, "src", note_leaving, stream);
  return {};
}

Result<StreamsEffort> perform_ours(const StreamsTask& task) {
  if (!gst::register_elements(nullptr)) return fail(ErrorKind::kInternal, "no peninfer");
  Watched watched(task);
  std::vector<Stream> streams(std::size_t(task.streams));
  const PipelinePtr pipeline(gst_pipeline_new(nullptr));
  for (int i = 0; i < task.streams; ++i) {
    Stream& stream = streams[std::size_t(i)];
    stream.watched = &watched;
    stream.number = i;
    PENSTOCK_TRY(add_stream(pipeline.get(), task, stream));
  }
  gst_element_set_state(pipeline.get(), GST_STATE_PLAYING);
  PENSTOCK_TRY(await_end(pipeline.get()));
  return watched.result();
}

Result<StreamsEffort> perform_raw(const StreamsTask& task) {
  auto effort = perform_limit(task.clip, task.streams);
  if (!effort) return std::unexpected(std::move(effort).error());
  return StreamsEffort{.effort = *effort, .peak_rss_kib = peak_rss_kib()};
}

}  // namespace

Result<StreamsEffort> perform_streams(StreamsContender contender, const StreamsTask& task) {
  auto done = contender == StreamsContender::kOurs ? perform_ours(task) : perform_raw(task);
  const int wanted = task.clip.frames * task.streams;
  if (done && done->effort.frames != wanted) {
    return fail(ErrorKind::kInternal,
                str_format("{} frames were done instead of {}", done->effort.frames, wanted));
  }
  return done;
}

Result<StreamsEffort> perform_streams_apart(StreamsContender contender, const StreamsTask& task) {
  auto text = run_self({"--perform-streams", std::to_string(int(contender)),
                        std::to_string(task.streams), str_format("{:.6f}", task.rate),
                        task.clip.clip.string(), std::to_string(task.clip.frames),
                        task.clip.manifest.string(), task.clip.library.string()});
  StreamsEffort done;
  long long wall = 0, cpu = 0, latency = 0, run = 0, ideal = 0;
  if (!text || std::sscanf(text->c_str(), "effort %d %lld %lld %ld %lld %lld %lf %lld",
                           &done.effort.frames, &wall, &cpu, &done.peak_rss_kib, &latency, &run,
                           &done.others_cores, &ideal) != 8) {
    return fail(ErrorKind::kDevice, str_format("measuring contender {} with {} streams failed",
                                               int(contender), task.streams));
  }
  done.effort.wall = Nanoseconds(wall);
  done.effort.cpu = Nanoseconds(cpu);
  done.latency_p95 = Nanoseconds(latency);
  done.run_p50 = Nanoseconds(run);
  done.ideal_p95 = Nanoseconds(ideal);
  return done;
}

int perform_streams_from_arguments(int argc, char** argv) {
  if (argc != 9) return 64;
  gst_init(nullptr, nullptr);
  const StreamsTask task{.clip = {.clip = argv[5],
                                  .frames = std::atoi(argv[6]),
                                  .manifest = argv[7],
                                  .library = argv[8],
                                  .scratch = {}},
                         .streams = std::atoi(argv[3]),
                         .rate = std::atof(argv[4])};
  auto done = perform_streams(StreamsContender(std::atoi(argv[2])), task);
  if (!done) {
    std::fprintf(stderr, "%s\n", done.error().message().c_str());
    return 1;
  }
  std::printf("effort %d %lld %lld %ld %lld %lld %.3f %lld\n", done->effort.frames,
              (long long)done->effort.wall.count(), (long long)done->effort.cpu.count(),
              done->peak_rss_kib, (long long)done->latency_p95.count(),
              (long long)done->run_p50.count(), done->others_cores,
              (long long)done->ideal_p95.count());
  std::fflush(stdout);
  // ONNX Runtime's and GStreamer's threads are not worth waiting for.
  std::quick_exit(0);
}

}  // namespace penstock::bench
