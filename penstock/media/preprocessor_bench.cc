// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include "penstock/media/preprocessor.h"
#include "penstock/media/test_frames.h"

namespace penstock {
namespace {

// Arguments: width, height, input side, 0 NV12 / 1 I420, 0 NCHW / 1 NHWC.
void BM_Preprocess(benchmark::State& state) {
  const auto device = testing::make_device("cpu");
  const auto width = static_cast<int>(state.range(0));
  const auto height = static_cast<int>(state.range(1));
  PreprocessSpec spec;
  spec.width = spec.height = static_cast<int>(state.range(2));
  spec.fit = Fit::kLetterboxCenter;
  spec.layout = state.range(4) == 0 ? TensorLayout::kNchw : TensorLayout::kNhwc;
  const auto frame = testing::make_frame(
      *device, testing::noise(width, height, 1),
      {.format = state.range(3) == 0 ? PixelFormat::kNv12 : PixelFormat::kI420});
  const auto preprocessor = Preprocessor::create(device, spec);
  if (!preprocessor) return state.SkipWithError(preprocessor.error().message());
  for (auto _ : state) {
    auto result = (*preprocessor)->run(frame);
    if (!result) return state.SkipWithError(result.error().message());
    benchmark::DoNotOptimize(result->tensor.data.storage->address());
  }
  state.SetBytesProcessed(state.iterations() * 3 * sizeof(float) * state.range(2) * state.range(2));
}
BENCHMARK(BM_Preprocess)
    ->ArgNames({"width", "height", "input", "i420", "nhwc"})
    ->ArgsProduct({{1920}, {1080}, {416, 640}, {0, 1}, {0}})
    ->ArgsProduct({{768}, {576}, {416, 640}, {0, 1}, {0}})
    ->Args({1920, 1080, 416, 0, 1})
    ->Unit(benchmark::kMicrosecond);

// What the output alone costs: the tensor written once.
void BM_FillTensor(benchmark::State& state) {
  const auto side = static_cast<std::size_t>(state.range(0));
  std::vector<float> tensor(3 * side * side);
  float value = 0;
  for (auto _ : state) {
    std::fill(tensor.begin(), tensor.end(), value);
    value += 1;
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(4 * tensor.size()));
}
BENCHMARK(BM_FillTensor)->Arg(416)->Arg(640)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace penstock
