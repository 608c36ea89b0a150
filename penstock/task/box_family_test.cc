// SPDX-License-Identifier: Apache-2.0
//
// Contract P02 for box detectors: outputs written down by hand, boxes computed by hand.
#include "penstock/task/box_family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/media/test_frames.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

struct Output {
  Shape shape;
  std::vector<float> values;
};

std::vector<float> transposed(const std::vector<float>& rows, std::size_t width) {
  std::vector<float> columns(rows.size());
  const std::size_t count = rows.size() / width;
  for (std::size_t r = 0; r < count; ++r) {
    for (std::size_t c = 0; c < width; ++c) columns[c * count + r] = rows[r * width + c];
  }
  return columns;
}

class P02 : public ::testing::TestWithParam<const char*> {
 protected:
  static Manifest manifest(const std::string& family, const std::vector<Output>& outputs,
                           int labels = 3) {
    Manifest manifest;
    manifest.name = "by-hand";
    manifest.task = "detection";
    manifest.family = family;
    for (int i = 0; i < labels; ++i) manifest.labels.push_back(str_format("class{}", i));
    manifest.preprocess.width = 64;
    manifest.preprocess.height = 32;
    for (const Output& output : outputs) {
      TensorSpec& spec = manifest.outputs.emplace_back();
      spec.name = str_format("out{}", manifest.outputs.size());
      for (const std::int64_t side : output.shape) spec.dims.push_back(Dimension::fixed(side));
    }
    return manifest;
  }

  Result<std::vector<DetectionRecord>> decode(const std::string& family,
                                              const std::vector<Output>& outputs,
                                              const DecodeOptions& options = {}, int item = 0) {
    auto decoder = create_decoder(manifest(family, outputs), options);
    if (!decoder) return std::unexpected(decoder.error());
    std::vector<Tensor> tensors;
    for (const Output& output : outputs) {
      const auto bytes = std::as_bytes(std::span(output.values));
      auto storage = device_->allocate(bytes.size());
      if (!storage) return std::unexpected(storage.error());
      const StorageRegion region{*storage, 0, bytes.size()};
      PENSTOCK_TRY(device_->upload(region, bytes, TransferPurpose::kTestContent));
      tensors.push_back({.name = "out",
                         .type = DataType::kFloat32,
                         .shape = output.shape,
                         .data = region,
                         .ready = {}});
    }
    const auto decoded = (*decoder)->decode(*device_, tensors, item);
    if (!decoded) return std::unexpected(decoded.error());
    const DetectionBlock* block = &decoded->block;
    return std::vector(block->records.begin(), block->records.begin() + block->count);
  }

  void expect(const Result<std::vector<DetectionRecord>>& got,
              const std::vector<DetectionRecord>& wanted) {
    ASSERT_TRUE(got) << got.error().message();
    ASSERT_EQ(got->size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      SCOPED_TRACE(i);
      EXPECT_FLOAT_EQ((*got)[i].x0, wanted[i].x0);
      EXPECT_FLOAT_EQ((*got)[i].y0, wanted[i].y0);
      EXPECT_FLOAT_EQ((*got)[i].x1, wanted[i].x1);
      EXPECT_FLOAT_EQ((*got)[i].y1, wanted[i].y1);
      EXPECT_FLOAT_EQ((*got)[i].score, wanted[i].score);
      EXPECT_EQ((*got)[i].class_id, wanted[i].class_id);
    }
  }

  const DevicePtr device_ = testing::make_device(GetParam());
};
INSTANTIATE_TEST_SUITE_P(cpu, P02, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, P02, ::testing::Values("sim"));

TEST_P(P02, GivenYolov8Columns_WhenDecoded_ThenBestClassAndCornersComeOut) {
  // cx, cy, w, h, three classes
  const std::vector<float> rows{20, 10, 8,  4,  0.1f, 0.9f, 0.2f,  //
                                21, 10, 8,  4,  0.1f, 0.8f, 0.2f,  // overlaps the first, same class
                                21, 10, 8,  4,  0.7f, 0.2f, 0.2f,  // the same place, another class
                                50, 20, 10, 10, 0.3f, 0.3f, 0.39f,  // below the threshold
                                50, 20, 10, 10, 0.4f, 0.4f, 0.1f};  // a tie: the lower class
  expect(decode("yolov8", {{{1, 7, 5}, transposed(rows, 7)}}),
         {{16, 8, 24, 12, 0.9f, 1}, {17, 8, 25, 12, 0.7f, 0}, {45, 15, 55, 25, 0.4f, 0}});
}

TEST_P(P02, GivenYolov8RowsOfSeveralBlocks_WhenDecoded_ThenEachIsLookedAtOnce) {
  // More rows than the decoder takes at a time, and not a multiple of that.
  constexpr std::size_t kRows = 2500;
  std::vector<float> rows(kRows * 7, 0.0f);
  std::vector<DetectionRecord> wanted;
  for (const std::size_t r : {std::size_t{0}, std::size_t{1023}, std::size_t{1024}, kRows - 1}) {
    float* row = &rows[r * 7];
    row[0] = static_cast<float>(4 + 8 * wanted.size());
    row[1] = row[2] = row[3] = 4;
    row[4 + r % 3] = 0.9f - 0.1f * static_cast<float>(wanted.size());
    wanted.push_back({row[0] - 2, 2, row[0] + 2, 6, row[4 + r % 3], std::int32_t(r % 3)});
  }
  expect(decode("yolov8", {{{1, 7, kRows}, transposed(rows, 7)}}), wanted);
}

TEST_P(P02, GivenYolov5Rows_WhenDecoded_ThenTheScoreIsObjectnessTimesClass) {
  const std::vector<float> rows{20, 10, 8, 4, 0.9f, 0.1f, 1.0f, 0.2f,  //
                                50, 20, 8, 4, 0.8f, 0.5f, 0.4f, 0.4f,  // 0.4, exactly the threshold
                                40, 20, 8, 4, 0.3f, 1.0f, 0.4f, 0.4f,  // no object there
                                10, 20, 8, 4, 0.7f, 0.4f, 0.4f, 0.4f};  // 0.28
  expect(decode("yolov5", {{{1, 4, 8}, rows}}),
         {{16, 8, 24, 12, 0.9f, 1}, {46, 18, 54, 22, 0.4f, 0}});
}

TEST_P(P02, GivenEndToEndBoxes_WhenDecoded_ThenTheyComeAsTheyAreWithoutNms) {
  const std::vector<float> rows{
      10, 10, 20, 20, 0.8f, 2,   //
      10, 10, 20, 20, 0.9f, 2,   // the same place: two objects, says the model
      0,  0,  5,  5,  0.1f, 0,   //
      30, 10, 20, 20, 0.9f, 0,   // inside out
      10, 10, 20, 20, 0.9f, 3,   // no such class
      10, 10, 20, 20, 0.9f, -1,  //
      10, 10, 20, 20, 0.9f, kNan};
  expect(decode("yolo-end-to-end", {{{1, 7, 6}, rows}}),
         {{10, 10, 20, 20, 0.9f, 2}, {10, 10, 20, 20, 0.8f, 2}});
}

TEST_P(P02, GivenYoloxCells_WhenDecoded_ThenGridAndStrideAreApplied) {
  // 64x32: 8x4 + 4x2 + 2x1 = 42 cells
  std::vector<float> rows(42 * 8, 0.0f);
  const auto set = [&](std::size_t cell, std::vector<float> values) {
    std::ranges::copy(values, rows.begin() + std::ptrdiff_t(cell * 8));
  };
  set(9, {0.5f, 0.25f, std::log(2.0f), 0, 0.9f, 0, 0, 1});       // stride 8, column 1, row 1
  set(32 + 7, {0, 0.5f, 0, std::log(0.5f), 0.8f, 0.75f, 0, 0});  // stride 16, column 3, row 1
  set(41, {0.5f, 0.5f, 0, 0, 1, 0, 0.5f, 0});                    // stride 32, column 1
  expect(decode("yolox", {{{1, 42, 8}, rows}}),
         {{4, 6, 20, 14, 0.9f, 2}, {40, 20, 56, 28, 0.6f, 0}, {32, 0, 64, 32, 0.5f, 1}});
}

TEST_P(P02, GivenRtdetrQueriesInBothForms_WhenDecoded_ThenBoxesAreScaledToTheInput) {
  const std::vector<float> joined{0.5f, 0.5f, 0.25f, 0.5f, 0.1f, 0.2f, 0.75f,  //
                                  0.5f, 0.5f, 0.25f, 0.5f, 0.1f, 0.2f, 0.5f,
                                  0.1f, 0.1f, 0.1f,  0.1f, 0.1f, 0.2f, 0.3f};
  expect(decode("rtdetr", {{{1, 3, 7}, joined}}),
         {{24, 8, 40, 24, 0.75f, 2}, {24, 8, 40, 24, 0.5f, 2}});
  const Output logits{{1, 2, 3}, {-5, std::log(3.0f), -5, -5, -4, -3}};
  const Output boxes{{1, 2, 4}, {0.5f, 0.5f, 0.25f, 0.5f, 0.1f, 0.1f, 0.1f, 0.1f}};
  expect(decode("rtdetr", {logits, boxes}), {{24, 8, 40, 24, 0.75f, 1}});
  expect(decode("rtdetr", {boxes, logits}), {{24, 8, 40, 24, 0.75f, 1}});
}

TEST_P(P02, GivenSsdInBothForms_WhenDecoded_ThenTheListEndsWhereItSays) {
  const std::vector<float> list{0,  1, 0.9f, 0.25f, 0.25f, 0.5f, 0.75f,  //
                                0,  0, 0.2f, 0,     0,     1,    1,      //
                                -1, 2, 0.9f, 0,     0,     1,    1,      // the end
                                0,  2, 0.9f, 0,     0,     1,    1};
  expect(decode("ssd", {{{1, 1, 4, 7}, list}}), {{16, 8, 32, 24, 0.9f, 1}});
  const Output boxes{{1, 3, 4}, {0.25f, 0.25f, 0.75f, 0.5f, 0, 0, 1, 1, 0, 0, 1, 1}};
  const Output classes{{1, 3}, {1, 0, 2}};
  const Output scores{{1, 3}, {0.9f, 0.8f, 0.7f}};
  const Output count{{1}, {2}};
  expect(decode("ssd", {boxes, classes, scores, count}),
         {{16, 8, 32, 24, 0.9f, 1}, {0, 0, 64, 32, 0.8f, 0}});
  expect(decode("ssd", {count, classes, boxes, scores}),
         {{16, 8, 32, 24, 0.9f, 1}, {0, 0, 64, 32, 0.8f, 0}});
}

TEST_P(P02, GivenASecondBatchItem_WhenDecoded_ThenItsOwnValuesAreRead) {
  const std::vector<float> two{10, 10, 20, 20, 0.8f, 0, 30, 10, 40, 20, 0.9f, 1};
  expect(decode("yolo-end-to-end", {{{2, 1, 6}, two}}, {}, 1), {{30, 10, 40, 20, 0.9f, 1}});
  EXPECT_FALSE(decode("yolo-end-to-end", {{{2, 1, 6}, two}}, {}, 2));
}

struct FamilyRow {
  const char* family;
  std::size_t width;
  std::vector<float> good;  ///< One row that is an object of score 0.9.
  std::size_t score;        ///< Which value makes its score.
  bool columns = false;
};
std::vector<FamilyRow> row_families() {
  return {{"yolov5", 8, {20, 10, 8, 4, 0.9f, 0, 1, 0}, 4},
          {"yolov8", 7, {20, 10, 8, 4, 0, 0.9f, 0}, 5, true},
          {"yolo-end-to-end", 6, {16, 8, 24, 12, 0.9f, 1}, 4},
          {"rtdetr", 7, {0.3f, 0.3f, 0.1f, 0.1f, 0, 0.9f, 0}, 5}};
}

TEST_P(P02, GivenNoBoxOrHundreds_WhenDecoded_ThenNoneOrThreeHundredComeOut) {
  for (const FamilyRow& family : row_families()) {
    SCOPED_TRACE(family.family);
    for (const std::size_t count : {std::size_t{1}, std::size_t{450}}) {
      std::vector<float> rows;
      for (std::size_t i = 0; i < count; ++i) {
        rows.insert(rows.end(), family.good.begin(), family.good.end());
        // Apart from one another, so that NMS keeps them.
        rows[i * family.width] += static_cast<float>(i) * 100;
        if (family.family == std::string("yolo-end-to-end")) {
          rows[i * family.width + 2] += static_cast<float>(i) * 100;
        }
        if (count == 1) rows[family.score] = 0;
      }
      const auto n = static_cast<std::int64_t>(count);
      const auto w = static_cast<std::int64_t>(family.width);
      const auto got =
          decode(family.family, {family.columns ? Output{{1, w, n}, transposed(rows, family.width)}
                                                : Output{{1, n, w}, rows}});
      ASSERT_TRUE(got) << got.error().message();
      EXPECT_EQ(got->size(), count == 1 ? 0u : 300u);
    }
  }
}

TEST_P(P02, GivenNaNOrInfiniteValues_WhenDecoded_ThenTheyNeverWin) {
  for (const FamilyRow& family : row_families()) {
    for (const float bad : {kNan, kInf, -kInf}) {
      for (std::size_t at = 0; at < family.width; ++at) {
        SCOPED_TRACE(str_format("{} value {}: {}", family.family, at, bad));
        std::vector<float> rows = family.good;
        rows[at] = bad;
        rows.insert(rows.end(), family.good.begin(), family.good.end());
        const auto w = static_cast<std::int64_t>(family.width);
        const auto got = decode(family.family,
                                {family.columns ? Output{{1, w, 2}, transposed(rows, family.width)}
                                                : Output{{1, 2, w}, rows}});
        ASSERT_TRUE(got) << got.error().message();
        ASSERT_GE(got->size(), 1u);
        for (const DetectionRecord& record : *got) {
          EXPECT_TRUE(std::isfinite(record.score) && std::isfinite(record.x0) &&
                      std::isfinite(record.y1));
          EXPECT_FLOAT_EQ(record.score, 0.9f);
        }
      }
    }
  }
}

TEST_P(P02, GivenOutputsThatDoNotFit_WhenCreated_ThenFamilyAndShapesAreNamed) {
  const std::vector<std::pair<std::string, std::vector<Output>>> wrong{
      {"yolov8", {{{1, 8, 100}, {}}}},                     // four classes, three labels
      {"yolov8", {{{1, 4, 100}, {}}}},                     // no class
      {"yolov8", {{{1, 7, 100}, {}}, {{1, 7, 100}, {}}}},  //
      {"yolov8", {{{1, 7, 9000000000}, {}}}},              //
      {"yolov5", {{{1, 100, 7}, {}}}},                     //
      {"yolo-end-to-end", {{{1, 300, 7}, {}}}},            //
      {"yolox", {{{1, 43, 8}, {}}}},                       // the input has 42 cells
      {"rtdetr", {{{1, 300, 4}, {}}, {{1, 200, 3}, {}}}},  //
      {"rtdetr", {{{1, 300, 5}, {}}, {{1, 300, 3}, {}}}},  //
      {"ssd", {{{1, 1, 100, 6}, {}}}},                     //
      {"ssd", {{{1, 10, 4}, {}}, {{1, 10}, {}}, {{1, 9}, {}}, {{1}, {}}}},
      {"ssd", {{{1, 10, 4}, {}}, {{1, 10}, {}}}},
  };
  for (const auto& [family, outputs] : wrong) {
    const auto decoder = create_decoder(manifest(family, outputs), {});
    ASSERT_FALSE(decoder) << family << to_string(outputs[0].shape);
    EXPECT_EQ(decoder.error().kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(decoder.error().message(), HasSubstr("'" + family + "'"));
    EXPECT_THAT(decoder.error().message(), HasSubstr(to_string(outputs[0].shape)));
  }
}

}  // namespace
}  // namespace penstock
