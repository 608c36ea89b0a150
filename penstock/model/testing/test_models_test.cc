// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/testing/test_models.h"

#include <gtest/gtest.h>

#include <cmath>

#include "penstock/memory/cpu/cpu_device.h"
#include "penstock/model/session.h"
#include "penstock/model/testing/session_support.h"

namespace penstock::model_testing {
namespace {

struct Found {
  int item, class_id, stride;
  float score, x0, y0, x1, y1;
};

/// NanoDet's decoding, as its paper says it: softmax expectation of each side's 11 bins.
std::vector<Found> found_in(Device& device, const TestModel& model, const Tensor& input) {
  const TemporaryFolder folder;
  const auto manifest = load_manifest(write_model_folder(model, folder.path() / "model"));
  EXPECT_TRUE(manifest) << manifest.error().message();
  if (!manifest) return {};
  const auto session = open_session(make_cpu_device({}), *manifest);
  EXPECT_TRUE(session) << session.error().message();
  if (!session) return {};
  const auto outputs = (*session)->run(std::vector{input});
  EXPECT_TRUE(outputs) << outputs.error().message();
  if (!outputs) return {};
  std::vector<Found> found;
  const int strides[] = {8, 16, 32};
  for (std::size_t level = 0; level < 3; ++level) {
    const int stride = strides[level];
    const Tensor& scores = outputs->at(level);
    const std::vector<float> score = values_of(device, scores);
    const std::vector<float> bins = values_of(device, outputs->at(level + 3));
    const auto cells = scores.shape.at(1);
    const auto classes = scores.shape.at(2);
    const auto side = static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(cells))));
    for (std::int64_t cell = 0; cell < scores.shape.at(0) * cells; ++cell) {
      for (std::int64_t c = 0; c < classes; ++c) {
        const float value = score.at(static_cast<std::size_t>(cell * classes + c));
        if (value < 0.4f) continue;
        float distance[4];
        for (std::int64_t edge = 0; edge < 4; ++edge) {
          double sum = 0, weighted = 0;
          for (std::int64_t bin = 0; bin < 11; ++bin) {
            const double e =
                std::exp(bins.at(static_cast<std::size_t>((cell * 4 + edge) * 11 + bin)));
            sum += e;
            weighted += e * static_cast<double>(bin);
          }
          distance[edge] = static_cast<float>(weighted / sum * stride);
        }
        const auto x =
            (static_cast<float>(cell % cells % side) + 0.5f) * static_cast<float>(stride);
        const auto y =
            (static_cast<float>(cell % cells / side) + 0.5f) * static_cast<float>(stride);
        found.push_back({static_cast<int>(cell / cells), static_cast<int>(c), stride, value,
                         x - distance[0], y - distance[1], x + distance[2], y + distance[3]});
      }
    }
  }
  return found;
}

void paint(std::vector<float>& image, int size, int item, int x, int y, int side,
           const float (&rgb)[3]) {
  for (int c = 0; c < 3; ++c) {
    for (int row = y; row < y + side; ++row) {
      for (int column = x; column < x + side; ++column) {
        image[static_cast<std::size_t>(((item * 3 + c) * size + row) * size + column)] = rgb[c];
      }
    }
  }
}

TEST(SquareFinder, GivenOneSquareOfEachSizeAndColour_WhenRun_ThenExactlyThoseAreFound) {
  constexpr int kSize = 256;
  const auto device = make_cpu_device({});
  // Two pictures in a batch; grey ground.
  std::vector<float> image(2 * 3 * kSize * kSize, 0.45f);
  paint(image, kSize, 0, 24, 16, 24, {1, 0, 0});
  paint(image, kSize, 0, 128, 32, 48, {0, 1, 0});
  paint(image, kSize, 1, 64, 96, 96, {0, 0, 1});
  paint(image, kSize, 1, 8, 8, 48, {1, 1, 1});     // white is no colour
  paint(image, kSize, 1, 192, 16, 24, {1, 1, 0});  // yellow is no pure one
  const Tensor input = floats(*device, "input", {2, 3, kSize, kSize}, image);
  const auto found = found_in(*device, make_square_finder_nanodet(kSize), input);
  ASSERT_EQ(found.size(), 3u);
  const Found expected[] = {{0, 0, 8, 1, 24, 16, 48, 40},
                            {0, 1, 16, 1, 128, 32, 176, 80},
                            {1, 2, 32, 1, 64, 96, 160, 192}};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found[i].item, expected[i].item);
    EXPECT_EQ(found[i].class_id, expected[i].class_id);
    EXPECT_EQ(found[i].stride, expected[i].stride);
    EXPECT_NEAR(found[i].score, 1, 1e-3);
    EXPECT_NEAR(found[i].x0, expected[i].x0, 1e-3);
    EXPECT_NEAR(found[i].y0, expected[i].y0, 1e-3);
    EXPECT_NEAR(found[i].x1, expected[i].x1, 1e-3);
    EXPECT_NEAR(found[i].y1, expected[i].y1, 1e-3);
  }
}

TEST(ConstantNanodet, GivenBoxes_WhenRun_ThenExactlyThoseAreAnswered) {
  constexpr int kSize = 64;
  const auto device = make_cpu_device({});
  const TestModel model = make_constant_nanodet(kSize, 80,
                                                {{.class_id = 7,
                                                  .score = 0.75f,
                                                  .stride = 16,
                                                  .cell_x = 1,
                                                  .cell_y = 2,
                                                  .left = 0.25f,
                                                  .top = 1,
                                                  .right = 1.5f,
                                                  .bottom = 0}});
  const Tensor input =
      floats(*device, "input", {1, 3, kSize, kSize}, std::vector<float>(3 * kSize * kSize, 9.0f));
  const auto found = found_in(*device, model, input);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].class_id, 7);
  EXPECT_EQ(found[0].stride, 16);
  EXPECT_FLOAT_EQ(found[0].score, 0.75f);
  EXPECT_NEAR(found[0].x0, 24 - 4, 1e-3);
  EXPECT_NEAR(found[0].y0, 40 - 16, 1e-3);
  EXPECT_NEAR(found[0].x1, 24 + 24, 1e-3);
  EXPECT_NEAR(found[0].y1, 40, 1e-3);
}

}  // namespace
}  // namespace penstock::model_testing
