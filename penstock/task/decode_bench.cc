// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <random>

#include "penstock/media/geometry.h"
#include "penstock/media/test_frames.h"
#include "penstock/task/nms.h"
#include "penstock/task/test_nanodet.h"

namespace penstock {
namespace {

// Arguments: candidates, boxes spread over this many pixels.
void BM_NonMaximumSuppression(benchmark::State& state) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> place(0, static_cast<float>(state.range(1)));
  std::uniform_real_distribution<float> side(10, 80), score(0.4f, 1);
  std::vector<Candidate> candidates;
  for (int i = 0; i < state.range(0); ++i) {
    const float x = place(random), y = place(random);
    candidates.push_back({{x, y, x + side(random), y + side(random), score(random), i % 3}, i});
  }
  std::vector<Candidate> work;
  for (auto _ : state) {
    work = candidates;
    non_maximum_suppression(work, {});
    benchmark::DoNotOptimize(work.data());
  }
}
BENCHMARK(BM_NonMaximumSuppression)
    ->Args({30, 416})
    ->Args({1000, 640})
    ->Args({8400, 640})
    ->Unit(benchmark::kMicrosecond);

// One frame's boxes and JSON line from NanoDet's outputs at 416: 20 cells above the threshold.
void BM_NanodetBoxesAndJson(benchmark::State& state) {
  const auto device = testing::make_device("cpu");
  testing::NanodetOutputs outputs(416, 80);
  for (int i = 0; i < 20; ++i) {
    outputs.score(0, 300 + 2 * i, 0) = 0.5f + 0.02f * static_cast<float>(i);
    outputs.set_box(0, 300 + 2 * i, 1, 2, 1, 2);
  }
  const Manifest manifest = outputs.manifest();
  const auto tensors = outputs.upload(*device);
  const auto decoder = create_decoder(manifest, {});
  if (!decoder) return state.SkipWithError(decoder.error().message());
  const auto box = Letterbox::plan({0, 0, 768, 576}, 768, 576, 416, 416, Fit::kLetterboxCenter);
  FrameResult result;
  result.source = "bench.avi";
  for (auto _ : state) {
    auto decoded = (*decoder)->decode(*device, tensors);
    if (!decoded) return state.SkipWithError(decoded.error().message());
    static_cast<Findings&>(result) = to_findings(*std::move(decoded), *box, manifest.labels);
    benchmark::DoNotOptimize(to_json_line(result));
  }
}
BENCHMARK(BM_NanodetBoxesAndJson)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace penstock
