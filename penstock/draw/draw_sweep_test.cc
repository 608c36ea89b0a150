// SPDX-License-Identifier: Apache-2.0
//
// A03 for drawing: on `cpu` a frame is read once, in order, and never written.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "penstock/draw/compositor.h"
#include "penstock/media/page_watch_for_test.h"
#include "penstock/media/test_frames.h"

namespace penstock {
namespace {

using testing::PageWatch;

struct SweepCase {
  const char* name;
  PixelFormat format;
  int width, height;
  std::size_t stride;  // of luma
};

class A03 : public ::testing::TestWithParam<SweepCase> {};

const SweepCase kCases[] = {{"nv12_one_row_a_page", PixelFormat::kNv12, 4096, 48, 4096},
                            {"nv12_1080p", PixelFormat::kNv12, 1920, 1080, 2048},
                            {"i420_odd_stride", PixelFormat::kI420, 1920, 270, 1926},
                            {"i420_small", PixelFormat::kI420, 768, 576, 768}};

INSTANTIATE_TEST_SUITE_P(cpu, A03, ::testing::ValuesIn(kCases),
                         [](const auto& sweep) { return std::string(sweep.param.name); });

TEST_P(A03, GivenAFrameOfGuardedPages_WhenDrawnOn_ThenNoPageIsOpenedTwiceAndNothingWrites) {
  const SweepCase& sweep = GetParam();
  const auto device = testing::make_device("cpu");
  const auto rows = static_cast<std::size_t>(sweep.height);
  std::vector<PageWatch::PlaneSize> sizes{{sweep.stride, rows}};
  if (sweep.format == PixelFormat::kNv12) {
    sizes.push_back({sweep.stride, rows / 2});
  } else {
    sizes.insert(sizes.end(), 2, {sweep.stride / 2, rows / 2});
  }
  PageWatch watch(sizes);
  auto frame = std::make_shared<VideoFrame>();
  frame->format = sweep.format;
  frame->width = sweep.width;
  frame->height = sweep.height;
  for (std::size_t p = 0; p < sizes.size(); ++p) {
    frame->planes[p] = {.storage = watch.storage(p), .offset = 0, .stride = sizes[p].stride};
  }
  const std::vector<Detection> objects{
      {.label = "object", .confidence = 1, .x = 20, .y = 5, .width = 300, .height = 40}};
  const auto overlay = Overlay::create({}, sweep.width, sweep.height);
  auto drawing = (*overlay)->draw({.objects = objects});
  ASSERT_TRUE(drawing);
  const std::size_t stride = 4 * static_cast<std::size_t>(sweep.width);
  const auto output = device->allocate(stride * rows);
  const auto compositor = Compositor::create(device);
  watch.restart();
  const auto done =
      (*compositor)
          ->run(frame, std::make_shared<const Drawing>(*std::move(drawing)), *output, stride);
  ASSERT_TRUE(done && done->wait());
  EXPECT_EQ(watch.reopened(), 0);
  EXPECT_EQ(watch.writes(), 0);
  for (std::size_t p = 0; p < sizes.size(); ++p) {
    EXPECT_GT(watch.opened(p), 0) << "plane " << p;
    EXPECT_LE(watch.opened(p), watch.pages(p)) << "plane " << p;
  }
}

}  // namespace
}  // namespace penstock
