// SPDX-License-Identifier: Apache-2.0
//
// Contract P02 from frame to finding, off every grid: squares anywhere on frames whose scale is no
// whole number. A network that measures them (square_measurer.h) loses only what sampling loses:
// with samples s source pixels apart an edge is known to half a sample either way. So each edge,
// keypoint and turned box must land within one source pixel where s is at most 2, else within s /
// 2; and over all squares the errors must cancel out, which no shift by a part of a pixel would do.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/exec/frame_inference.h"
#include "penstock/media/test_frames.h"
#include "penstock/model/testing/square_measurer.h"

namespace penstock {
namespace {

using model_testing::BoxLayout;
using testing::make_device;
using testing::make_frame;
using testing::Picture;

constexpr int kModelSize = 160;

struct Size {
  int width, height;
};
constexpr Size kSizes[] = {{1000, 562}, {766, 432}, {398, 224}, {234, 310}, {198, 146}, {122, 90}};

/// Even, as chroma is: an edge within a chroma pixel would be drawn a pixel off.
struct Square {
  int class_id, x, y, width, height;
};

Picture draw(const Size& size, const Square& square) {
  // Full red, green and blue in BT.709 limited.
  constexpr std::uint8_t kLevels[3][3] = {{63, 102, 240}, {173, 42, 26}, {32, 240, 118}};
  const auto& level = kLevels[square.class_id];
  Picture picture(size.width, size.height, 126);
  for (int row = square.y; row < square.y + square.height; ++row) {
    for (int column = square.x; column < square.x + square.width; ++column) {
      picture.y_at(column, row) = level[0];
      const auto chroma =
          static_cast<std::size_t>(row / 2) * static_cast<std::size_t>(size.width / 2) +
          static_cast<std::size_t>(column / 2);
      picture.u[chroma] = level[1];
      picture.v[chroma] = level[2];
    }
  }
  return picture;
}

/// Where a model pixel lies in the source, by the documented rule: the scaled size is rounded half
/// to even, padding that can't be halved has its larger half right and below.
struct Axis {
  int index = 0;     ///< 0: across, 1: down.
  double scale = 1;  ///< Source pixels a model pixel.
  int pad = 0;       ///< Model pixels.

  Axis(int which, int side, int other, Fit fit) : index(which) {
    const double ratio = std::min(double{kModelSize} / side, double{kModelSize} / other);
    const double scaled = fit == Fit::kStretch ? kModelSize : std::nearbyint(side * ratio);
    scale = side / scaled;
    if (fit == Fit::kLetterboxCenter) pad = (kModelSize - static_cast<int>(scaled)) / 2;
  }
  double bound() const { return scale <= 2 ? 1.0 : scale / 2; }
};

/// Signed errors in model pixels.
struct Errors {
  double sum = 0;
  int count = 0;
  void add(double error) {
    sum += error;
    ++count;
  }
};

class P02 : public ::testing::TestWithParam<std::tuple<const char*, BoxLayout>> {
 protected:
  static BoxLayout layout() { return std::get<1>(GetParam()); }

  Manifest load(Fit fit) {
    const auto folder = std::filesystem::path(::testing::TempDir()) /
                        str_format("penstock-places-{}-{}", to_string(layout()), getpid());
    const auto model = model_testing::make_square_measurer(layout(), kModelSize);
    auto manifest = load_manifest(model_testing::write_model_folder(model, folder));
    EXPECT_TRUE(manifest) << manifest.error().message();
    if (!manifest) return {};
    manifest->preprocess.fit = fit;
    return *manifest;
  }

  void expect_place(double found, double drawn, const Axis& axis, const char* what) {
    EXPECT_NEAR(found, drawn, axis.bound()) << what;
    errors_[axis.index].add((found - drawn) / axis.scale);
  }

  void expect_found(const InferenceResult& result, const Size& size, const Square& square,
                    Fit fit) {
    ASSERT_EQ(result.objects.size(), 1u);
    const Detection& found = result.objects.front();
    EXPECT_EQ(found.class_id, square.class_id);
    const Axis x(0, size.width, size.height, fit), y(1, size.height, size.width, fit);
    const double margin = box_margin(layout());
    expect_place(found.x + margin * x.scale, square.x, x, "left");
    expect_place(found.y + margin * y.scale, square.y, y, "top");
    expect_place(found.x + found.width - margin * x.scale, square.x + square.width, x, "right");
    expect_place(found.y + found.height - margin * y.scale, square.y + square.height, y, "bottom");
    const int count = keypoints_of(layout());
    ASSERT_EQ(found.keypoints.size(), static_cast<std::size_t>(count));
    for (int k = 0; k < count; ++k) {
      const auto place = model_testing::keypoint_place(count, k);
      const Keypoint& at = found.keypoints[static_cast<std::size_t>(k)];
      expect_place(at.x, square.x + double{place.x} * square.width, x, "keypoint x");
      expect_place(at.y, square.y + double{place.y} * square.height, y, "keypoint y");
    }
    ASSERT_EQ(found.rotated.has_value(), layout() == BoxLayout::kYolov8Obb);
    if (found.rotated) {
      const RotatedBox& turned = *found.rotated;
      const double half_width = double{turned.width} / 2, half_height = double{turned.height} / 2;
      EXPECT_EQ(turned.angle, 0);
      expect_place(turned.center_x - half_width, square.x, x, "turned left");
      expect_place(turned.center_x + half_width, square.x + square.width, x, "turned right");
      expect_place(turned.center_y - half_height, square.y, y, "turned top");
      expect_place(turned.center_y + half_height, square.y + square.height, y, "turned bottom");
    }
    expect_mask(result, square, x, y);
  }

  /// A mask pixel has 4 x 4 model pixels: its value says whether more than half of it is the
  /// square's, unless an edge comes within the bound of its middle.
  void expect_mask(const InferenceResult& result, const Square& square, const Axis& x,
                   const Axis& y) {
    ASSERT_EQ(result.device.masks.has_value(), layout() == BoxLayout::kYolov8Seg);
    if (!result.device.masks) return;
    constexpr int kSide = kModelSize / 4;
    const Tensor& masks = *result.device.masks;
    ASSERT_EQ(to_string(masks.shape), str_format("[1,{},{}]", kSide, kSide));
    std::vector<std::uint8_t> levels(masks.data.size);
    ASSERT_TRUE(device_->read_back(std::as_writable_bytes(std::span(levels)), masks.data,
                                   {masks.ready}, TransferPurpose::kTestContent));
    const auto outside = [](double at, int start, int length) {
      return std::max(start - at, at - (start + length));
    };
    int inside = 0;
    for (int row = 0; row < kSide; ++row) {
      for (int column = 0; column < kSide; ++column) {
        const double far_x = outside((column * 4 + 2 - x.pad) * x.scale, square.x, square.width);
        const double far_y = outside((row * 4 + 2 - y.pad) * y.scale, square.y, square.height);
        const bool marked = levels[static_cast<std::size_t>(row * kSide + column)] > 127;
        if (far_x > x.bound() || far_y > y.bound()) {
          EXPECT_FALSE(marked) << column << "," << row;
        } else if (far_x < -x.bound() && far_y < -y.bound() &&
                   // At a corner a pixel half in along both axes is only a quarter in.
                   (far_x < -2 * x.scale || far_y < -2 * y.scale)) {
          EXPECT_TRUE(marked) << column << "," << row;
          ++inside;
        }
      }
    }
    EXPECT_GT(inside, 0);
  }

  const DevicePtr device_ = make_device(std::get<0>(GetParam()));
  Errors errors_[2];
};

TEST_P(P02, GivenSquaresAnywhereOnFramesOfOddScales_WhenMeasured_ThenTheyLandThere) {
  std::uint32_t random = 1;
  const auto even_within = [&](int low, int high) {
    random = random * 1664525u + 1013904223u;
    const int steps = (high - low) / 2 + 1;
    return low + 2 * static_cast<int>((random >> 8) % static_cast<std::uint32_t>(steps));
  };
  int n = 0;
  for (const Fit fit : {Fit::kLetterboxCenter, Fit::kLetterboxTopLeft, Fit::kStretch}) {
    InferenceOptions options;
    options.workers = 1;
    auto inference = FrameInference::open(device_, load(fit), options);
    ASSERT_TRUE(inference) << inference.error().message();
    for (const Size& size : kSizes) {
      for (int square_of_size = 0; square_of_size < 3; ++square_of_size) {
        // Not at the frame's edges, where boxes are clipped and a picture's colour is repeated.
        const int margin = std::max(size.width, size.height) / 20 * 2;
        const int width = even_within(size.width / 8 * 2, size.width / 4 * 2);
        const int height = even_within(size.height / 8 * 2, size.height / 4 * 2);
        const Square square{.class_id = n % 3,
                            .x = even_within(margin, size.width - margin - width),
                            .y = even_within(margin, size.height - margin - height),
                            .width = width,
                            .height = height};
        SCOPED_TRACE(str_format("{}x{} at {},{} on {}x{}, fit {}", width, height, square.x,
                                square.y, size.width, size.height, static_cast<int>(fit)));
        auto future = (*inference)
                          ->executor()
                          .submit({.frame = make_frame(*device_, draw(size, square),
                                                       {.format = PixelFormat::kNv12,
                                                        .color = {.site = ChromaSite::kCenter}}),
                                   .roi = {},
                                   .source = {"camera"},
                                   .generation = 0},
                                  WhenFull::kWait);
        ASSERT_TRUE(future);
        const auto result = future->get();
        ASSERT_TRUE(result) << result.error().message();
        expect_found(*result, size, square, fit);
        ++n;
      }
    }
  }
  for (const Errors& errors : errors_) {
    ASSERT_GE(errors.count, 2 * n);
    EXPECT_NEAR(errors.sum / errors.count, 0, 0.1) << "a shift of all, in model pixels";
  }
}

std::string layout_name(const ::testing::TestParamInfo<std::tuple<const char*, BoxLayout>>& info) {
  return std::string(to_string(std::get<1>(info.param)));
}
const auto kLayouts = ::testing::Values(
    BoxLayout::kYolov5, BoxLayout::kYolov8, BoxLayout::kEndToEnd, BoxLayout::kRtdetr,
    BoxLayout::kYolov8Seg, BoxLayout::kYolov8Pose, BoxLayout::kYolov8Obb);
INSTANTIATE_TEST_SUITE_P(cpu, P02, ::testing::Combine(::testing::Values("cpu"), kLayouts),
                         layout_name);
INSTANTIATE_TEST_SUITE_P(sim, P02, ::testing::Combine(::testing::Values("sim"), kLayouts),
                         layout_name);

}  // namespace
}  // namespace penstock
