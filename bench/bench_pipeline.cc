// SPDX-License-Identifier: Apache-2.0
//
// bench pipeline: our whole job (decode, infer, decode boxes, metadata, JSON; no video encoding)
// beside what no pipeline can beat and beside GStreamer's own inference element, which decodes no
// boxes and writes no JSON, on a real clip and on its H.264 transcode. Pairs run one after the
// other with the order swapped each time; a row's ratio is the median of the pairs' ratios.
#include <gst/gst.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/clips.h"
#include "bench/contenders.h"
#include "bench/report.h"
#include "penstock/base/str_format.h"
#include "penstock/model/manifest.h"

namespace penstock::bench {
namespace {

namespace fs = std::filesystem;

struct Flags {
  std::string clip = kDefaultClip;
  std::string model = "nanodet";
  std::string models;
  std::string library;
  std::string json = "build/bench/pipeline.json";
  int pairs = 15;
  int frames = 120;
};

struct Pairs {
  std::vector<double> ours_cpu, peer_cpu, cpu_ratio;
  std::vector<double> ours_rate, peer_rate, rate_ratio;

  /// Cores that the two kept busy.
  double ours_cores() const { return median(ours_cpu) * median(ours_rate) / 1e3; }
  double peer_cores() const { return median(peer_cpu) * median(peer_rate) / 1e3; }
};

Result<Pairs> compare(Contender ours, Contender peer, const Task& task, int count) {
  Pairs pairs;
  for (int i = 0; i < count; ++i) {
    const bool ours_first = i % 2 == 0;
    auto first = perform_apart(ours_first ? ours : peer, task);
    if (!first) return std::unexpected(first.error());
    auto second = perform_apart(ours_first ? peer : ours, task);
    if (!second) return std::unexpected(second.error());
    const Effort& a = ours_first ? *first : *second;
    const Effort& b = ours_first ? *second : *first;
    pairs.ours_cpu.push_back(a.cpu_ms_per_frame());
    pairs.peer_cpu.push_back(b.cpu_ms_per_frame());
    pairs.cpu_ratio.push_back(b.cpu_ms_per_frame() / a.cpu_ms_per_frame());
    pairs.ours_rate.push_back(a.frames_per_second());
    pairs.peer_rate.push_back(b.frames_per_second());
    pairs.rate_ratio.push_back(a.frames_per_second() / b.frames_per_second());
    std::fprintf(stderr, "pair %d: CPU %.2f and %.2f ms a frame, %.1f and %.1f frames/s\n", i + 1,
                 a.cpu_ms_per_frame(), b.cpu_ms_per_frame(), a.frames_per_second(),
                 b.frames_per_second());
  }
  return pairs;
}

void add_rate(BenchReport& report, const std::string& name, const char* peer, const Pairs& pairs,
              double bar) {
  report.add({.name = name,
              .unit = "frames/s",
              .higher_is_better = true,
              .ours = median(pairs.ours_rate),
              .peer_name = peer,
              .peer = median(pairs.peer_rate),
              .ratio = median(pairs.rate_ratio),
              .bar = bar});
}

/// onnxinference decodes no boxes and writes no JSON.
void add_against_peer(BenchReport& report, const std::string& name, const Pairs& pairs,
                      double bar) {
  const std::string cores =
      str_format("; cores busy: ours {:.1f}, peer {:.1f}", pairs.ours_cores(), pairs.peer_cores());
  add_rate(report, name + cores, "onnxinference", pairs, bar);
  report.add({.name = name + ", CPU time",
              .unit = "ms CPU/frame",
              .higher_is_better = false,
              .ours = median(pairs.ours_cpu),
              .peer_name = "onnxinference",
              .peer = median(pairs.peer_cpu),
              .ratio = median(pairs.cpu_ratio)});
}

/// `peer` is the ONNX Runtime that onnxinference runs on.
Result<void> measure(const std::string& name, const Task& task, const EngineLibrary& peer,
                     int count, BenchReport& report) {
  auto limit = compare(Contender::kOurs, Contender::kLimit, task, count);
  if (!limit) return std::unexpected(limit.error().context(name));
  report.add({.name = name + ", CPU time",
              .unit = "ms CPU/frame",
              .higher_is_better = false,
              .ours = median(limit->ours_cpu),
              .peer_name = "limit",
              .peer = median(limit->peer_cpu),
              .ratio = median(limit->cpu_ratio),
              .bar = 0.96});
  add_rate(report, name + ", wall time", "limit", *limit, 0.94);

  auto all = compare(Contender::kOurs, Contender::kOnnxInference, task, count);
  if (!all) return std::unexpected(all.error().context(name));
  // The peer was taken for one that uses one core, but its ONNX Runtime has a thread a core, which
  // no setting of the element and no affinity changes. How many it used is measured and printed.
  add_against_peer(report, name + ", all cores", *all, 1.8);

  auto one = compare(Contender::kOursOneWorker, Contender::kOnnxInferenceQueue, task, count);
  if (!one) return std::unexpected(one.error().context(name));
  add_against_peer(report, name + ", one worker, peer with queue", *one, 1.0);

  // How much of that is the newer library's. No bar: it says nothing of how Penstock is used.
  Task same = task;
  same.library = peer.path;
  auto equal = compare(Contender::kOursOneWorker, Contender::kOnnxInferenceQueue, same, count);
  if (!equal) return std::unexpected(equal.error().context(name));
  add_against_peer(report, name + ", one worker, peer with queue, both on the peer's ONNX Runtime",
                   *equal, 0);
  return {};
}

int run_all(const Flags& flags) {
  gst_init(nullptr, nullptr);
  auto manifest = find_model(flags.model, models_folder(flags.models));
  if (!manifest) {
    std::fprintf(stderr, "bench pipeline: %s\n", manifest.error().message().c_str());
    return 1;
  }
  const fs::path folder = fs::absolute(fs::path(flags.json)).parent_path();
  auto h264 = h264_of(flags.clip, folder);
  if (!h264) {
    std::fprintf(stderr, "bench pipeline: %s\n", h264.error().message().c_str());
    return 1;
  }
  const auto engine = engine_apart(library_or_default(flags.library));
  const auto peer_engine = engine_apart({});
  for (const auto* asked : {&engine, &peer_engine}) {
    if (*asked) continue;
    std::fprintf(stderr, "bench pipeline: %s\n", asked->error().message().c_str());
    return 1;
  }
  BenchReport report("pipeline");
  report.set_run({.pairs = flags.pairs,
                  .frames = flags.frames,
                  .engine = engine->version,
                  .peer_engine = peer_engine->version});
  Task task{.clip = flags.clip,
            .frames = flags.frames,
            .manifest = *manifest,
            .library = flags.library,
            .scratch = folder};
  for (const auto& [name, clip] :
       {std::pair{fs::path(flags.clip).filename().string(), fs::path(flags.clip)},
        std::pair{h264->filename().string(), *h264}}) {
    task.clip = clip;
    if (auto measured = measure(name, task, *peer_engine, flags.pairs, report); !measured) {
      std::fprintf(stderr, "bench pipeline: %s\n", measured.error().message().c_str());
      return 1;
    }
  }
  return report.finish(flags.json) ? 0 : 1;
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  using namespace penstock::bench;
  if (argc > 1 && std::strcmp(argv[1], "--perform") == 0) return perform_from_arguments(argc, argv);
  if (argc > 1 && std::strcmp(argv[1], "--engine") == 0) return engine_from_arguments(argc, argv);
  CLI::App app("The main job beside its limit and beside onnxinference", "bench_pipeline");
  Flags flags;
  app.add_option("--clip", flags.clip, "The clip")->capture_default_str();
  app.add_option("--model", flags.model, "Model name or manifest")->capture_default_str();
  app.add_option("--models", flags.models, "Folder of prepared models");
  app.add_option("--engine-library", flags.library, "The ONNX Runtime library");
  app.add_option("--json", flags.json, "Where the results go")->capture_default_str();
  app.add_option("--pairs", flags.pairs, "Pairs a comparison")->capture_default_str();
  app.add_option("--frames", flags.frames, "Frames a measurement")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return run_all(flags);
}
