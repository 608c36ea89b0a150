// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "penstock/media/geometry.h"
#include "penstock/media/test_frames.h"
#include "penstock/task/kernels/mask_fill.h"
#include "penstock/task/nms.h"
#include "penstock/task/rotated_nms.h"
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

void BM_RotatedNonMaximumSuppression(benchmark::State& state) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> place(0, static_cast<float>(state.range(1)));
  std::uniform_real_distribution<float> side(10, 80), score(0.4f, 1), angle(-0.7f, 2.3f);
  std::vector<RotatedRecord> boxes;
  std::vector<Candidate> candidates;
  for (int i = 0; i < state.range(0); ++i) {
    boxes.push_back({place(random), place(random), side(random), side(random), angle(random)});
    candidates.push_back({upright_hull(boxes.back(), score(random), i % 3), i});
  }
  std::vector<Candidate> work;
  for (auto _ : state) {
    work = candidates;
    rotated_non_maximum_suppression(
        work, {}, [&](std::int32_t i) { return boxes[static_cast<std::size_t>(i)]; });
    benchmark::DoNotOptimize(work.data());
  }
}
BENCHMARK(BM_RotatedNonMaximumSuppression)
    ->Args({30, 416})
    ->Args({1000, 1024})
    ->Unit(benchmark::kMicrosecond);

// Masks of 160 x 160 from 32 prototypes. Arguments: objects, the side of their boxes in mask
// pixels.
void BM_InstanceMasks(benchmark::State& state) {
  constexpr std::size_t kSide = 160, kPixels = kSide * kSide, kChannels = 32;
  std::mt19937 random(1);
  std::uniform_real_distribution<float> value(-1, 1);
  std::vector<float> prototypes(kChannels * kPixels), coefficients(kChannels);
  for (float& v : prototypes) v = value(random);
  for (float& v : coefficients) v = value(random);
  const auto objects = static_cast<std::size_t>(state.range(0));
  const auto side = static_cast<std::size_t>(state.range(1));
  std::vector<std::uint8_t> masks(objects * kPixels);
  std::vector<MaskJob> jobs;
  for (std::size_t i = 0; i < objects; ++i) {
    const std::size_t at = i * 37 % (kSide - side + 1);
    jobs.push_back({coefficients,
                    {at, at, at + side, at + side},
                    std::span(masks).subspan(i * kPixels, kPixels)});
  }
  for (auto _ : state) {
    fill_masks({prototypes, kSide, kSide}, jobs);
    benchmark::DoNotOptimize(masks.data());
  }
}
BENCHMARK(BM_InstanceMasks)
    ->Args({10, 40})
    ->Args({10, 160})
    ->Args({100, 40})
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
