// SPDX-License-Identifier: Apache-2.0
//
// bench track: pentrack beside GStreamer's ioutracker on generated crowds whose truth is known.
// Each figure of the peer is its best over a grid of its parameters, chosen for each crowd and
// figure apart; pentrack has its defaults. CPU time is compared in turns with the parameters that
// give the peer its best IDF1; that row's ratio is the median of the rounds' ratios.
#include <gst/gst.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/report.h"
#include "bench/track_run.h"
#include "gst/register.h"
#include "penstock/base/str_format.h"

namespace penstock::bench {
namespace {

using testing::CrowdFrame;
using testing::CrowdOptions;

struct Flags {
  std::string json = "build/bench/track.json";
  int rounds = 15;
  int seeds = 3;
  int frames = 600;
};

std::vector<CrowdOptions> all_crowds() {
  return {{.objects = 5},
          {.objects = 40},
          {.objects = 5, .crossings = true},
          {.objects = 20, .crossings = true},
          {.objects = 10, .missed = 0.1f},
          {.objects = 20, .missed = 0.3f},
          {.objects = 10, .false_detections = 0.1f},
          {.objects = 10, .occlusion_frames = 30},
          {.objects = 20, .occlusion_frames = 30, .missed = 0.1f},
          {.objects = 20,
           .crossings = true,
           .occlusion_frames = 30,
           .missed = 0.1f,
           .false_detections = 0.05f},
          {.objects = 40, .missed = 0.1f, .false_detections = 0.1f},
          {.objects = 40,
           .crossings = true,
           .occlusion_frames = 30,
           .missed = 0.3f,
           .false_detections = 0.1f}};
}

std::string name_of(const CrowdOptions& crowd) {
  std::string name = str_format("{} objects", crowd.objects);
  if (crowd.crossings) name += ", crossing";
  if (crowd.occlusion_frames > 0) name += str_format(", hidden {}", crowd.occlusion_frames);
  if (crowd.missed > 0) name += str_format(", missed {:.0f} %", double(crowd.missed) * 100);
  if (crowd.false_detections > 0) {
    name += str_format(", false {:.0f} %", double(crowd.false_detections) * 100);
  }
  return name;
}

/// Means over the seeds.
struct Figures {
  std::string element;
  double mota = 0;
  double idf1 = 0;
};

/// One crowd, once a seed.
struct Scene {
  CrowdOptions options;
  std::vector<std::vector<CrowdFrame>> crowds;
};

Scene make_scene(CrowdOptions options, const Flags& flags) {
  options.frames = flags.frames;
  Scene scene{.options = options, .crowds = {}};
  for (int seed = 1; seed <= flags.seeds; ++seed) {
    options.seed = std::uint32_t(seed);
    scene.crowds.push_back(testing::make_crowd(options));
  }
  return scene;
}

Result<Figures> judge_element(const std::string& element, const Scene& scene) {
  Figures figures{.element = element};
  for (const auto& crowd : scene.crowds) {
    const auto run = run_tracker(element, crowd, scene.options);
    if (!run) return std::unexpected(run.error());
    const auto judged = testing::judge(crowd, run->told);
    figures.mota += judged.mota / double(scene.crowds.size());
    figures.idf1 += judged.idf1 / double(scene.crowds.size());
  }
  return figures;
}

std::vector<std::string> peers() {
  std::vector<std::string> elements;
  for (const char* iou : {"0.1", "0.2", "0.3", "0.5", "0.7"}) {
    for (const int lost : {2, 5, 15, 31}) {
      elements.push_back(str_format(
          "ioutracker iou-score-threshold={} min-frame-count-for-lost-track={}", iou, lost));
    }
  }
  return elements;
}

/// "ioutracker 0.3/15": overlap and frames until lost.
std::string short_name(const std::string& element) {
  const std::size_t iou = element.find('=') + 1, lost = element.rfind('=') + 1;
  return str_format("ioutracker {}/{}", element.substr(iou, element.find(' ', iou) - iou),
                    element.substr(lost));
}

BenchRow quality_row(const Scene& scene, const char* unit, double ours, double peer,
                     const std::string& peer_element) {
  // Better, and not only as good, where the task is not trivial.
  const bool is_hard = scene.options.crossings || scene.options.missed >= 0.1f;
  return {.name = name_of(scene.options),
          .unit = unit,
          .higher_is_better = true,
          .ours = ours,
          .peer_name = short_name(peer_element),
          .peer = peer,
          .ratio = peer > 0 ? ours / peer : (ours > peer ? 2.0 : 0.0),
          .bar = is_hard ? std::nextafter(1.0, 2.0) : 1.0};
}

Result<BenchRow> cpu_row(const Scene& scene, const std::string& peer, const Flags& flags) {
  std::vector<double> ours, theirs, ratios;
  for (int round = 0; round < flags.rounds; ++round) {
    for (const bool is_ours : {round % 2 == 0, round % 2 != 0}) {
      const auto run =
          run_tracker(is_ours ? "pentrack" : peer, scene.crowds.front(), scene.options);
      if (!run) return std::unexpected(run.error());
      (is_ours ? ours : theirs).push_back(run->cpu_us);
    }
    ratios.push_back(theirs.back() / ours.back());
  }
  return BenchRow{.name = name_of(scene.options),
                  .unit = "CPU us/frame",
                  .higher_is_better = false,
                  .ours = median(ours),
                  .peer_name = short_name(peer),
                  .peer = median(theirs),
                  .ratio = median(ratios),
                  .bar = 1.0};
}

Result<void> measure(const CrowdOptions& options, const Flags& flags, BenchReport& report) {
  const Scene scene = make_scene(options, flags);
  const auto ours = judge_element("pentrack", scene);
  if (!ours) return std::unexpected(ours.error());
  Figures best_mota, best_idf1;
  for (const std::string& element : peers()) {
    const auto figures = judge_element(element, scene);
    if (!figures) return std::unexpected(figures.error());
    if (best_mota.element.empty() || figures->mota > best_mota.mota) best_mota = *figures;
    if (best_idf1.element.empty() || figures->idf1 > best_idf1.idf1) best_idf1 = *figures;
  }
  report.add(quality_row(scene, "MOTA", ours->mota, best_mota.mota, best_mota.element));
  report.add(quality_row(scene, "IDF1", ours->idf1, best_idf1.idf1, best_idf1.element));
  auto cpu = cpu_row(scene, best_idf1.element, flags);
  if (!cpu) return std::unexpected(std::move(cpu).error());
  report.add(std::move(*cpu));
  return {};
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  using namespace penstock::bench;
  CLI::App app("pentrack beside ioutracker on generated crowds", "bench_track");
  Flags flags;
  app.add_option("--json", flags.json, "Where the results go")->capture_default_str();
  app.add_option("--rounds", flags.rounds, "Rounds of CPU time a crowd")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--seeds", flags.seeds, "Crowds of a kind")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--frames", flags.frames, "Frames a crowd")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  gst_init(nullptr, nullptr);
  if (!penstock::gst::register_elements(nullptr)) {
    std::fprintf(stderr, "bench track: GStreamer refuses penstock's elements\n");
    return 1;
  }
  BenchReport report("track");
  for (const penstock::testing::CrowdOptions& crowd : all_crowds()) {
    if (const auto done = measure(crowd, flags, report); !done) {
      std::fprintf(stderr, "bench track: %s: %s\n", name_of(crowd).c_str(),
                   done.error().message().c_str());
      return 1;
    }
  }
  return report.finish(flags.json) ? 0 : 1;
}
