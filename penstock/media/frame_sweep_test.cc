// SPDX-License-Identifier: Apache-2.0
//
// A03: on `cpu` a frame is swept once per full-frame model input and never written.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "penstock/media/page_watch_for_test.h"
#include "penstock/media/preprocessor.h"
#include "penstock/media/test_frames.h"

namespace penstock {
namespace {

using testing::PageWatch;
using testing::Picture;

struct SweepCase {
  const char* name;
  PixelFormat format;
  int width, height;
  std::size_t stride;  // of luma
  PreprocessSpec spec;
  std::optional<RectI> roi;
};

PreprocessSpec spec_of(int width, int height, Fit fit) {
  PreprocessSpec spec;
  spec.width = width;
  spec.height = height;
  spec.fit = fit;
  return spec;
}

// A frame in watched memory with the picture in it.
std::shared_ptr<VideoFrame> watched_frame(const PageWatch& watch, const Picture& picture,
                                          const SweepCase& sweep) {
  auto frame = std::make_shared<VideoFrame>();
  frame->format = sweep.format;
  frame->width = sweep.width;
  frame->height = sweep.height;
  const bool nv12 = sweep.format == PixelFormat::kNv12;
  for (std::size_t p = 0; p < static_cast<std::size_t>(plane_count(sweep.format)); ++p) {
    const std::size_t stride = p == 0 || nv12 ? sweep.stride : sweep.stride / 2;
    frame->planes[p] = {.storage = watch.storage(p), .offset = 0, .stride = stride};
    const auto bytes = watch.alias(p);
    const auto columns = static_cast<std::size_t>(p == 0 ? sweep.width : sweep.width / 2);
    const auto& samples = p == 0 ? picture.y : p == 1 ? picture.u : picture.v;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::size_t row = i / columns * stride;
      const std::size_t column = i % columns;
      bytes[row + (p > 0 && nv12 ? 2 * column : column)] = std::byte{samples[i]};
      if (p > 0 && nv12) bytes[row + 2 * column + 1] = std::byte{picture.v[i]};
    }
  }
  return frame;
}

std::vector<PageWatch::PlaneSize> plane_sizes(const SweepCase& sweep) {
  const auto rows = static_cast<std::size_t>(sweep.height);
  if (sweep.format == PixelFormat::kNv12) {
    return {{sweep.stride, rows}, {sweep.stride, rows / 2}};
  }
  return {{sweep.stride, rows}, {sweep.stride / 2, rows / 2}, {sweep.stride / 2, rows / 2}};
}

class A03 : public ::testing::TestWithParam<SweepCase> {};

const SweepCase kCases[] = {
    {"nv12_one_row_a_page",
     PixelFormat::kNv12,
     4096,
     48,
     4096,
     spec_of(416, 416, Fit::kStretch),
     {}},
    {"nv12_1080p_letterboxed",
     PixelFormat::kNv12,
     1920,
     1080,
     2048,
     spec_of(416, 416, Fit::kLetterboxCenter),
     {}},
    {"i420_1080p_odd_stride",
     PixelFormat::kI420,
     1920,
     1080,
     1926,
     spec_of(640, 640, Fit::kLetterboxCenter),
     {}},
    {"i420_one_to_one", PixelFormat::kI420, 768, 576, 768, spec_of(768, 576, Fit::kStretch), {}},
    {"i420_two_rows_a_page",
     PixelFormat::kI420,
     2048,
     64,
     4096,
     spec_of(96, 30, Fit::kStretch),
     {}},
    {"nv12_scaled_up", PixelFormat::kNv12, 320, 240, 320, spec_of(416, 416, Fit::kStretch), {}},
    {"nv12_region", PixelFormat::kNv12, 1280, 720, 1280, spec_of(64, 64, Fit::kStretch),
     RectI{200, 100, 600, 500}},
};

INSTANTIATE_TEST_SUITE_P(cpu, A03, ::testing::ValuesIn(kCases),
                         [](const auto& sweep) { return std::string(sweep.param.name); });

TEST_P(A03, GivenAFrameOfGuardedPages_WhenSwept_ThenNoPageIsOpenedTwiceAndNothingWrites) {
  const SweepCase& sweep = GetParam();
  const auto device = testing::make_device("cpu");
  const Picture picture = testing::noise(sweep.width, sweep.height, 21);
  PageWatch watch(plane_sizes(sweep));
  const auto frame = watched_frame(watch, picture, sweep);
  const auto preprocessor = Preprocessor::create(device, sweep.spec);
  ASSERT_TRUE(preprocessor);
  // Twice: making the tables must not hide a difference between the first frame and the others.
  for (int run = 0; run < 2; ++run) {
    watch.restart();
    const auto result = (*preprocessor)->run(frame, sweep.roi);
    ASSERT_TRUE(result) << result.error().message();
    ASSERT_TRUE(result->tensor.ready.wait());
    EXPECT_EQ(watch.reopened(), 0);
    EXPECT_EQ(watch.writes(), 0);
    for (int p = 0; p < plane_count(sweep.format); ++p) {
      EXPECT_GT(watch.opened(static_cast<std::size_t>(p)), 0) << "plane " << p;
      EXPECT_LE(watch.opened(static_cast<std::size_t>(p)),
                watch.pages(static_cast<std::size_t>(p)));
    }
    // That was a real run: the tensor is right.
    const auto values = testing::read_tensor(*device, result->tensor);
    const auto expected = testing::preprocess_oracle(picture, frame->color, sweep.spec, sweep.roi);
    double worst = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      worst = std::max(worst, std::abs(values[i] - expected[i]));
    }
    EXPECT_LT(worst, 0.1);
  }
}

TEST(PageWatch, GivenCodeThatReadsBackOrWrites_WhenWatched_ThenBothAreSeen) {
  const std::vector<PageWatch::PlaneSize> sizes{{4096, 8}};
  PageWatch watch(sizes);
  const auto storage = watch.storage(0);
  volatile std::byte* bytes = storage->host_bytes().data();
  for (int row = 0; row < 8; ++row) (void)bytes[row * 4096];
  EXPECT_EQ(watch.opened(0), 8);
  EXPECT_EQ(watch.reopened(), 0);
  (void)bytes[6 * 4096 + 5];
  EXPECT_EQ(watch.reopened(), 0) << "the last two rows stay open";
  (void)bytes[3 * 4096];
  EXPECT_EQ(watch.reopened(), 1);
  EXPECT_EQ(watch.writes(), 0);
  bytes[7 * 4096] = std::byte{1};
  EXPECT_EQ(watch.writes(), 1);
}

}  // namespace
}  // namespace penstock
