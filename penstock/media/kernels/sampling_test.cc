// SPDX-License-Identifier: Apache-2.0
#include "penstock/media/kernels/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace penstock {
namespace {

// Where a plan's windows say that a column lies, in samples from the crop's edge, and how often.
struct Found {
  double position = 0;
  int times = 0;
};

// One component of one plane, as the kernel reads it.
struct Component {
  const char* name;
  std::array<HalfShuffle, 2> ColumnWindows::* bytes;
  std::array<std::uint16_t, 2> ColumnWindows::* start;
  std::array<std::int16_t, 2 * kStepColumns> ColumnWeights::* weights;
  int samples;       // in the crop's row
  int sample_bytes;  // from one to the next
  int first_byte;    // of the component in a sample
};

std::vector<Found> find_columns(const SamplingPlan& plan, const Component& component) {
  const int row_bytes = component.samples * component.sample_bytes;
  std::vector<Found> found(plan.weights.size() * kStepColumns);
  for (std::size_t w = 0; w < plan.windows.size(); ++w) {
    const std::size_t step = w / plan.windows_per_step;
    for (std::size_t half = 0; half < 2; ++half) {
      const int start = (plan.windows[w].*component.start)[half];
      EXPECT_LE(start + int(kWindowBytes), std::max(row_bytes, int(kWindowBytes)));
      const HalfShuffle& bytes = (plan.windows[w].*component.bytes)[half];
      for (std::size_t i = 0; i < kHalfColumns; ++i) {
        EXPECT_EQ(bytes[4 * i + 1], kNoByte);
        EXPECT_EQ(bytes[4 * i + 3], kNoByte);
        if (bytes[4 * i] == kNoByte) continue;
        EXPECT_LT(bytes[4 * i + 2], kWindowBytes);
        EXPECT_EQ(bytes[4 * i + 2] - bytes[4 * i], component.sample_bytes);
        const int byte = start + bytes[4 * i] - component.first_byte;
        EXPECT_EQ(byte % component.sample_bytes, 0);
        const std::size_t column = half * kHalfColumns + i;
        const auto& weights = plan.weights[step].*component.weights;
        EXPECT_EQ(weights[2 * column] + weights[2 * column + 1], kWeightOne);
        Found& at = found[step * kStepColumns + column];
        at.position =
            double(byte) / component.sample_bytes + double(weights[2 * column + 1]) / kWeightOne;
        ++at.times;
      }
    }
  }
  return found;
}

void expect_columns(int crop, int scaled, bool interleaved) {
  SCOPED_TRACE(std::to_string(crop) + " to " + std::to_string(scaled) +
               (interleaved ? ", interleaved" : ""));
  const Letterbox box{.crop = {0, 0, crop, 2},
                      .scaled_width = scaled,
                      .scaled_height = 1,
                      .input_width = scaled,
                      .input_height = 1,
                      .frame_width = crop,
                      .frame_height = 2};
  const SamplingPlan plan = plan_sampling(box, ChromaSite::kLeft, interleaved);
  const int step = interleaved ? 2 : 1;
  for (const Component& component :
       {Component{"y", &ColumnWindows::y, &ColumnWindows::y_start, &ColumnWeights::y, crop, 1, 0},
        Component{"u", &ColumnWindows::u, &ColumnWindows::chroma_start, &ColumnWeights::chroma,
                  crop / 2, step, 0},
        Component{"v", &ColumnWindows::v, &ColumnWindows::chroma_start, &ColumnWeights::chroma,
                  crop / 2, step, step - 1}}) {
    SCOPED_TRACE(component.name);
    const std::vector<Found> found = find_columns(plan, component);
    ASSERT_GE(found.size(), std::size_t(scaled));
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i].times, i < std::size_t(scaled) ? 1 : 0) << "column " << i;
      if (found[i].times == 0) continue;
      // Left sited chroma lies where every other luma sample does.
      double wanted =
          ((double(i) + 0.5) * crop / scaled - 0.5) / (component.name[0] == 'y' ? 1 : 2);
      wanted = std::clamp(wanted, 0.0, component.samples - 1.0);
      ASSERT_NEAR(found[i].position, wanted, 1.0 / kWeightOne) << "column " << i;
    }
  }
}

TEST(SamplingPlan, GivenAnyScale_WhenPlanned_ThenEachColumnIsInOneWindowInsideTheRow) {
  for (const bool interleaved : {false, true}) {
    for (const int crop : {2, 4, 14, 16, 18, 30, 32, 34, 62, 96, 768, 1920, 32766}) {
      for (const int scaled : {1, 3, 4, 5, 8, 13, 40, 64, 416, 640}) {
        expect_columns(crop, scaled, interleaved);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(SamplingPlan, GivenTheScale_WhenPlanned_ThenStepsHaveAsFewWindowsAsTheyNeed) {
  const auto windows = [](int crop, int scaled, bool interleaved) {
    const Letterbox box{.crop = {0, 0, crop, 2},
                        .scaled_width = scaled,
                        .scaled_height = 1,
                        .input_width = scaled,
                        .input_height = 1,
                        .frame_width = crop,
                        .frame_height = 2};
    return plan_sampling(box, ChromaSite::kLeft, interleaved).windows_per_step;
  };
  EXPECT_EQ(windows(640, 640, true), 1u);
  EXPECT_EQ(windows(1920, 640, true), 1u);
  EXPECT_EQ(windows(1920, 416, false), 1u);
  EXPECT_EQ(windows(1920, 416, true), 2u);
  EXPECT_EQ(windows(1920, 64, true), 4u);
}

}  // namespace
}  // namespace penstock
