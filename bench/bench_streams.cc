// SPDX-License-Identifier: Apache-2.0
//
// bench streams: many streams of a clip that share one model. Saturated beside what no pipeline can
// beat (pairs, order swapped, as bench pipeline); how much memory a stream more takes; and the
// latency when they come at 80 % of the saturated rate.
#include <gst/gst.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/clips.h"
#include "bench/report.h"
#include "bench/streams_run.h"
#include "penstock/base/str_format.h"
#include "penstock/model/manifest.h"

namespace penstock::bench {
namespace {

constexpr double kLoad = 0.8;
constexpr double kAllowedMiB = 25;
/// Inference times that a frame may take through peninfer.
constexpr double kAllowedRuns = 3;

struct Flags {
  std::string clip = kDefaultClip;
  std::string model = "nanodet";
  std::string models;
  std::string library;
  std::string json = "build/bench/streams.json";
  std::vector<int> counts = {1, 4, 16, 32};
  int pairs = 15;
  int frames = 240;
  int paced_runs = 5;
};

/// What pairs of a count of streams came to.
struct Saturated {
  std::vector<double> ours_cpu, limit_cpu, cpu_ratio;
  std::vector<double> ours_rate, limit_rate, rate_ratio;
  std::vector<double> peak_mib;
};

Result<Saturated> saturate(const StreamsTask& task, int pairs) {
  Saturated all;
  for (int i = 0; i < pairs; ++i) {
    const auto first = i % 2 == 0 ? StreamsContender::kOurs : StreamsContender::kLimit;
    const auto second = i % 2 == 0 ? StreamsContender::kLimit : StreamsContender::kOurs;
    auto a = perform_streams_apart(first, task);
    if (!a) return std::unexpected(a.error());
    auto b = perform_streams_apart(second, task);
    if (!b) return std::unexpected(b.error());
    const StreamsEffort& ours = i % 2 == 0 ? *a : *b;
    const StreamsEffort& limit = i % 2 == 0 ? *b : *a;
    all.ours_cpu.push_back(ours.effort.cpu_ms_per_frame());
    all.limit_cpu.push_back(limit.effort.cpu_ms_per_frame());
    all.cpu_ratio.push_back(all.limit_cpu.back() / all.ours_cpu.back());
    all.ours_rate.push_back(ours.effort.frames_per_second());
    all.limit_rate.push_back(limit.effort.frames_per_second());
    all.rate_ratio.push_back(all.ours_rate.back() / all.limit_rate.back());
    all.peak_mib.push_back(double(ours.peak_rss_kib) / 1024);
    std::fprintf(stderr,
                 "%d streams, pair %d: CPU %.2f and %.2f ms a frame, %.1f and %.1f frames/s\n",
                 task.streams, i + 1, all.ours_cpu.back(), all.limit_cpu.back(),
                 all.ours_rate.back(), all.limit_rate.back());
  }
  return all;
}

void add_saturated(BenchReport& report, int streams, const Saturated& all) {
  report.add({.name = str_format("{} streams, CPU time", streams),
              .unit = "ms CPU/frame",
              .higher_is_better = false,
              .ours = median(all.ours_cpu),
              .peer_name = "limit",
              .peer = median(all.limit_cpu),
              .ratio = median(all.cpu_ratio),
              .bar = 0.96});
  report.add({.name = str_format("{} streams, wall time", streams),
              .unit = "frames/s",
              .higher_is_better = true,
              .ours = median(all.ours_rate),
              .peer_name = "limit",
              .peer = median(all.limit_rate),
              .ratio = median(all.rate_ratio)});
}

/// Latency in inference times of the same run, at kLoad of `saturated_rate`.
Result<void> pace(BenchReport& report, StreamsTask task, double saturated_rate, int runs) {
  task.rate = saturated_rate * kLoad;
  std::vector<double> latencies;
  std::vector<double> ideals;
  std::vector<double> ratios;
  for (int i = 0; i < runs; ++i) {
    auto done = perform_streams_apart(StreamsContender::kOurs, task);
    if (!done) return std::unexpected(done.error());
    latencies.push_back(double(done->latency_p95.count()) / double(done->run_p50.count()));
    ideals.push_back(double(done->ideal_p95.count()) / double(done->run_p50.count()));
    ratios.push_back(ideals.back() / latencies.back());
    std::fprintf(
        stderr,
        "%d streams, paced at %.1f frames/s: p95 %.1f ms (an ideal queue %.1f), a run %.1f ms; "
        "others kept %.2f cores busy\n",
        task.streams, task.rate, double(done->latency_p95.count()) / 1e6,
        double(done->ideal_p95.count()) / 1e6, double(done->run_p50.count()) / 1e6,
        done->others_cores);
  }
  report.add(
      {.name = str_format("{} streams at {:.0f} % load, p95 latency", task.streams, 100 * kLoad),
       .unit = "inference times",
       .higher_is_better = false,
       .ours = median(latencies),
       .peer_name = "allowed",
       .peer = kAllowedRuns,
       .ratio = kAllowedRuns / median(latencies),
       .bar = 1});
  report.add(
      {.name = str_format("{} streams at {:.0f} % load, p95 latency", task.streams, 100 * kLoad),
       .unit = "inference times",
       .higher_is_better = false,
       .ours = median(latencies),
       .peer_name = "ideal-queue",
       .peer = median(ideals),
       .ratio = median(ratios)});
  return {};
}

Result<void> measure(const Flags& flags, Task clip, BenchReport& report) {
  std::vector<double> peaks;
  for (const int streams : flags.counts) {
    StreamsTask task{.clip = clip, .streams = streams};
    task.clip.frames = std::max(1, flags.frames / streams);
    auto all = saturate(task, flags.pairs);
    if (!all) return std::unexpected(all.error());
    add_saturated(report, streams, *all);
    peaks.push_back(median(all->peak_mib));
    PENSTOCK_TRY(pace(report, task, median(all->ours_rate), flags.paced_runs));
  }
  const int more = flags.counts.back() - flags.counts.front();
  if (more <= 0) return {};
  const double each = (peaks.back() - peaks.front()) / more;
  report.add({.name = str_format("memory of a stream more, {} to {}", flags.counts.front(),
                                 flags.counts.back()),
              .unit = "MiB at the peak",
              .higher_is_better = false,
              .ours = each,
              .peer_name = "allowed",
              .peer = kAllowedMiB,
              .ratio = kAllowedMiB / std::max(each, 1e-3),
              .bar = 1});
  return {};
}

int fail_with(const Error& error) {
  std::fprintf(stderr, "bench streams: %s\n", error.message().c_str());
  return 1;
}

int run_all(const Flags& flags) {
  gst_init(nullptr, nullptr);
  auto manifest = find_model(flags.model, models_folder(flags.models));
  if (!manifest) return fail_with(manifest.error());
  const auto engine = engine_apart(library_or_default(flags.library));
  if (!engine) return fail_with(engine.error());
  BenchReport report("streams");
  report.set_run({.pairs = flags.pairs,
                  .frames = flags.frames,
                  .engine = engine->version,
                  .peer_engine = engine->version});
  const Task clip{.clip = flags.clip,
                  .frames = flags.frames,
                  .manifest = *manifest,
                  .library = flags.library,
                  .scratch = {}};
  if (auto measured = measure(flags, clip, report); !measured) return fail_with(measured.error());
  return report.finish(flags.json) ? 0 : 1;
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  using namespace penstock::bench;
  if (argc > 1 && std::strcmp(argv[1], "--perform-streams") == 0) {
    return perform_streams_from_arguments(argc, argv);
  }
  if (argc > 1 && std::strcmp(argv[1], "--engine") == 0) return engine_from_arguments(argc, argv);
  CLI::App app("Many streams that share one model", "bench_streams");
  Flags flags;
  app.add_option("--clip", flags.clip, "The clip")->capture_default_str();
  app.add_option("--model", flags.model, "Model name or manifest")->capture_default_str();
  app.add_option("--models", flags.models, "Folder of prepared models");
  app.add_option("--engine-library", flags.library, "The ONNX Runtime library");
  app.add_option("--json", flags.json, "Where the results go")->capture_default_str();
  app.add_option("--streams", flags.counts, "Counts of streams, ascending")
      ->delimiter(',')
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--pairs", flags.pairs, "Pairs a count")->capture_default_str();
  app.add_option("--frames", flags.frames, "Frames a measurement, of all streams together")
      ->capture_default_str();
  app.add_option("--paced-runs", flags.paced_runs, "Runs at 80 % load a count")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return run_all(flags);
}
