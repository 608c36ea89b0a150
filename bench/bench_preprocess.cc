// SPDX-License-Identifier: Apache-2.0
//
// bench preprocess: one fused sweep from a decoded frame to the model's input beside what people
// write with OpenCV and GStreamer, and beside the machine's bandwidth for writes. One thread, all
// outputs allocated before, contenders in turn with the order rotated; a row's ratio is the median
// of the rounds' ratios. Before the clock starts the contenders' tensors are compared.
#include <gst/gst.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <opencv2/core.hpp>
#include <string>
#include <vector>

#include "bench/preprocess_peers.h"
#include "bench/report.h"
#include "penstock/base/clock.h"
#include "penstock/base/str_format.h"
#include "penstock/media/preprocessor.h"

namespace penstock::bench {
namespace {

struct Flags {
  std::string json = "build/bench/preprocess.json";
  int rounds = 25;
  int frames = 20;
};

struct Case {
  int width, height;
  PixelFormat format;
  int input;
};

std::string name_of(const Case& c) {
  return str_format("{}x{} {} to {}", c.width, c.height,
                    c.format == PixelFormat::kNv12 ? "NV12" : "I420", c.input);
}

struct Contender {
  std::string name;
  double bar;
  std::function<void()> run;
  std::vector<double> ms{};     ///< A frame, by round.
  std::vector<double> ratio{};  ///< Against ours.
};

double ms_per_frame(const Contender& contender, int frames) {
  const TimePoint begun = Clock::system().now();
  for (int i = 0; i < frames; ++i) contender.run();
  return double((Clock::system().now() - begun).count()) / 1e6 / frames;
}

/// Rounds in rotated order; contenders[0] is ours.
void measure(std::vector<Contender>& contenders, const Flags& flags) {
  for (const Contender& contender : contenders) ms_per_frame(contender, 3);
  for (int round = 0; round < flags.rounds; ++round) {
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      Contender& next = contenders[(i + std::size_t(round)) % contenders.size()];
      next.ms.push_back(ms_per_frame(next, flags.frames));
    }
    for (Contender& contender : contenders) {
      contender.ratio.push_back(contender.ms.back() / contenders.front().ms.back());
    }
  }
}

/// Different chroma sitings and roundings make small differences; another picture makes large ones.
Result<void> compare(std::span<const float> ours, std::span<const float> theirs,
                     std::string_view name) {
  constexpr double kLevels = 4.0;
  double sum = 0;
  for (std::size_t i = 0; i < ours.size(); ++i)
    sum += std::abs(double(ours[i]) - double(theirs[i]));
  const double mean = sum / double(ours.size()) * 255;
  if (ours.size() == theirs.size() && mean <= kLevels) return {};
  return fail(ErrorKind::kInternal,
              str_format("{} makes another tensor: mean difference {:.2f} levels", name, mean));
}

/// Smooth, so that chroma siting and scaler do not matter for the comparison.
testing::Picture make_picture(int width, int height) {
  testing::Picture picture(width, height);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) picture.y_at(x, y) = std::uint8_t(16 + (x + 2 * y) / 16 % 220);
  }
  for (std::size_t i = 0; i < picture.u.size(); ++i) {
    picture.u[i] = std::uint8_t(100 + i % std::size_t(width / 2) * 56 / std::size_t(width / 2));
    picture.v[i] = std::uint8_t(156 - i / std::size_t(width / 2) * 56 / std::size_t(height / 2));
  }
  return picture;
}

PreprocessSpec spec_of(const Case& c) {
  PreprocessSpec spec;
  spec.input_name = "input";
  spec.width = spec.height = c.input;
  spec.scale = 1.0f / 255;
  spec.fit = Fit::kLetterboxCenter;
  return spec;
}

/// Bytes a millisecond that plain stores reach in memory of this size, written over and over.
double write_bandwidth(std::vector<float>& memory) {
  static float value = 0;
  constexpr std::size_t kBytes = std::size_t{256} << 20;
  const std::size_t times = std::max<std::size_t>(kBytes / (memory.size() * sizeof(float)), 1);
  const TimePoint begun = Clock::system().now();
  for (std::size_t i = 0; i < times; ++i) {
    std::ranges::fill(memory, value += 1);
    asm volatile("" : : "r"(memory.data()) : "memory");  // The stores are wanted.
  }
  return double(times * memory.size() * sizeof(float)) /
         (double((Clock::system().now() - begun).count()) / 1e6);
}

/// Ours writes a pooled output that caches may hold, so memory of its size is the strict yardstick;
/// memory that no cache holds is what a stream of new frames meets.
void add_bandwidth(const Case& c, double written, std::string_view peer, std::size_t floats,
                   BenchReport& report) {
  std::vector<float> memory(floats);
  std::vector<double> bandwidths;
  for (int i = 0; i < 5; ++i) bandwidths.push_back(write_bandwidth(memory));
  report.add({.name = name_of(c),
              .unit = "GB/s written",
              .higher_is_better = true,
              .ours = written / 1e6,
              .peer_name = std::string(peer),
              .peer = median(bandwidths) / 1e6,
              .ratio = written / median(bandwidths),
              .bar = 0.5});
}

Result<void> run_case(const Case& c, const Flags& flags, BenchReport& report) {
  const DevicePtr device = testing::make_device("cpu");
  const testing::Picture picture = make_picture(c.width, c.height);
  const Colorimetry color{.matrix = ColorMatrix::kBt601, .range = ColorRange::kLimited};
  const auto frame = testing::make_frame(*device, picture, {.format = c.format, .color = color});
  const RawFrame raw(picture, c.format);
  const auto preprocessor = Preprocessor::create(device, spec_of(c));
  if (!preprocessor) return std::unexpected(preprocessor.error());
  auto first = (*preprocessor)->run(frame);
  if (!first) return std::unexpected(first.error());
  const std::vector<float> ours = testing::read_tensor(*device, first->tensor);
  const Letterbox box = first->letterbox;
  first = fail(ErrorKind::kInternal, "given back to the pool");

  const auto planes_first = make_opencv_planes_first(raw, box);
  const auto convert_first = make_opencv_convert_first(raw, box);
  const auto convert_scale = make_videoconvertscale(raw, box);
  if (!convert_scale) return std::unexpected(convert_scale.error());
  std::vector<Contender> contenders{{"ours", 0, [&] {
                                       if (!(*preprocessor)->run(frame)) std::abort();
                                     }}};
  for (const auto& [peer, bar] : {std::pair{planes_first.get(), 1.5},
                                  {convert_first.get(), 2.5},
                                  {convert_scale->get(), 4.0}}) {
    PENSTOCK_TRY(compare(ours, peer->run(), peer->name()));
    contenders.push_back({std::string(peer->name()), bar, [peer] { (void)peer->run(); }});
  }
  measure(contenders, flags);
  const double ms = median(contenders.front().ms);
  for (const Contender& peer : std::span(contenders).subspan(1)) {
    report.add({.name = name_of(c),
                .unit = "ms",
                .higher_is_better = false,
                .ours = ms,
                .peer_name = peer.name,
                .peer = median(peer.ms),
                .ratio = median(peer.ratio),
                .bar = peer.bar});
  }
  const double written = double(ours.size() * sizeof(float)) / ms;
  add_bandwidth(c, written, "write-bandwidth", std::size_t{64} << 20, report);
  add_bandwidth(c, written, "write-same-size", ours.size(), report);
  return {};
}

int run_all(const Flags& flags) {
  gst_init(nullptr, nullptr);
  cv::setNumThreads(1);
  BenchReport report("preprocess");
  for (const auto& [width, height] : {std::pair{1920, 1080}, {768, 576}}) {
    for (const PixelFormat format : {PixelFormat::kNv12, PixelFormat::kI420}) {
      for (const int input : {416, 640}) {
        const Case c{width, height, format, input};
        if (auto done = run_case(c, flags, report); !done) {
          std::fprintf(stderr, "bench preprocess: %s: %s\n", name_of(c).c_str(),
                       done.error().message().c_str());
          return 1;
        }
      }
    }
  }
  return report.finish(flags.json) ? 0 : 1;
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  using namespace penstock::bench;
  CLI::App app("Preprocessing beside OpenCV and videoconvertscale", "bench_preprocess");
  Flags flags;
  app.add_option("--json", flags.json, "Where the results go")->capture_default_str();
  app.add_option("--rounds", flags.rounds, "Rounds a case")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--frames", flags.frames, "Frames a measurement")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  return run_all(flags);
}
