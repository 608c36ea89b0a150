// SPDX-License-Identifier: Apache-2.0
//
// Contracts P02, P03 and P04 for what all families have in common that say more than boxes:
// batches, limits, misfits, transfers and budgets.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/memory/testing/devices.h"
#include "penstock/task/test_extras.h"

namespace penstock {
namespace {

using testing::batched;
using testing::Extras;
using testing::families;
using testing::Family;
using ::testing::HasSubstr;
using testing::Output;
using testing::rows_of;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

class P02 : public Extras {};
INSTANTIATE_TEST_SUITE_P(cpu, P02, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, P02, ::testing::Values("sim"));

TEST_P(P02, GivenASecondBatchItem_WhenDecoded_ThenItsOwnExtrasAreRead) {
  for (const Family& family : families()) {
    SCOPED_TRACE(family.name);
    std::vector<float> first = family.good;
    first[family.score] = 0;
    std::vector<Output> outputs{batched(family.rows(first), family.rows(family.good))};
    for (const Output& more : family.more) {
      outputs.push_back(
          batched(Output{more.shape, std::vector<float>(more.values.size(), -100.0f)}, more));
    }
    const auto made = manifest(family.name, family.task, outputs, family.labels, family.keypoints);
    const auto got = decode(made, outputs, {}, 1);
    ASSERT_TRUE(got) << got.error().message();
    ASSERT_EQ(got->block.count, 1u);
    EXPECT_FLOAT_EQ(got->block.records[0].score, 0.9f);
    EXPECT_EQ(got->keypoints.size(), family.keypoints);
    if (!family.more.empty()) {
      // 255 / (1 + e^-2) in the box.
      EXPECT_EQ(levels(got, {1, 8, 16})[2 * 16 + 4], 225);
    }
    if (!got->rotated.empty()) {
      EXPECT_EQ(got->rotated[0].angle, 0.3f);
    }
    EXPECT_EQ(decode(made, outputs, {}, 0)->block.count, 0u);
    EXPECT_FALSE(decode(made, outputs, {}, 2));
  }
}

TEST_P(P02, GivenNoObjectOrHundreds_WhenDecoded_ThenEachOfAtMostThreeHundredHasItsExtras) {
  for (const Family& family : families()) {
    SCOPED_TRACE(family.name);
    std::vector<float> none = family.good;
    none[family.score] = 0;
    const auto empty = decode(family, none);
    ASSERT_TRUE(empty) << empty.error().message();
    EXPECT_EQ(empty->block.count, 0u);
    EXPECT_TRUE(empty->keypoints.empty() && empty->rotated.empty());
    EXPECT_FALSE(empty->device.masks);
    std::vector<float> rows;
    for (std::size_t i = 0; i < 450; ++i) {
      rows.insert(rows.end(), family.good.begin(), family.good.end());
      // Apart from one another, so that NMS keeps them.
      for (const std::size_t x : family.xs) {
        rows[i * family.width + x] += static_cast<float>(i) * 128 / family.unit;
      }
    }
    const auto got = decode(family, rows);
    ASSERT_TRUE(got) << got.error().message();
    ASSERT_EQ(got->block.count, 300u);
    ASSERT_EQ(got->keypoints.size(), 300 * family.keypoints);
    for (std::size_t i = 0; i < 300; ++i) {
      const float shift = static_cast<float>(i) * 128;
      EXPECT_NEAR(got->block.records[i].x0, got->block.records[0].x0 + shift, 0.01f);
      if (family.keypoints > 0) {
        EXPECT_NEAR(got->keypoints[i * family.keypoints].x, got->keypoints[0].x + shift, 0.01f);
      }
      if (!got->rotated.empty()) {
        EXPECT_EQ(got->rotated[i].center_x, 20 + shift);
      }
    }
    if (!family.more.empty()) {
      EXPECT_EQ(levels(got, {300, 8, 16}).size(), 300u * 128u);
    }
  }
}

TEST_P(P02, GivenNaNOrInfiniteValues_WhenDecoded_ThenNoBoxIsMadeOfThem) {
  for (const Family& family : families()) {
    for (const float bad : {kNan, kInf, -kInf}) {
      for (std::size_t at = 0; at < family.width; ++at) {
        SCOPED_TRACE(str_format("{} value {}: {}", family.name, at, bad));
        std::vector<float> rows = family.good;
        rows[at] = bad;
        rows.insert(rows.end(), family.good.begin(), family.good.end());
        const auto got = decode(family, rows);
        ASSERT_TRUE(got) << got.error().message();
        ASSERT_GE(got->block.count, 1u);
        EXPECT_EQ(got->keypoints.size(), got->block.count * family.keypoints);
        for (std::size_t i = 0; i < got->block.count; ++i) {
          const DetectionRecord& record = got->block.records[i];
          EXPECT_TRUE(std::isfinite(record.x0) && std::isfinite(record.y0) &&
                      std::isfinite(record.x1) && std::isfinite(record.y1));
          EXPECT_FLOAT_EQ(record.score, 0.9f);
          if (!got->rotated.empty()) {
            EXPECT_EQ(got->rotated[i].angle, 0.3f);
          }
        }
      }
    }
  }
}

TEST_P(P02, GivenOutputsThatDoNotFit_WhenCreated_ThenFamilyAndShapesAreNamed) {
  struct Wrong {
    const char* family;
    const char* task;
    std::vector<Output> outputs;
    int labels = 3;
    std::size_t keypoints = 0;
  };
  const char* const seg = "instance-segmentation";
  const char* const obb = "oriented-detection";
  const Output prototypes{{1, 32, 40, 40}, {}};
  for (const Wrong& wrong : std::vector<Wrong>{
           {"yolov8-seg", seg, {{{1, 40, 100}, {}}, prototypes}},     // four classes, three labels
           {"yolov8-seg", seg, {{{1, 36, 100}, {}}, prototypes}, 0},  // no class
           {"yolov8-seg", seg, {{{1, 39, 100}, {}}}},                 // no prototypes
           {"yolov8-seg", seg, {prototypes, prototypes}},             //
           {"yolov8-seg", seg, {{{1, 39, 100}, {}}, {{1, -1, 40, 40}, {}}}},
           {"yolov8-seg", seg, {{{1, 39, 100}, {}}, {{1, 32, 40, 5000}, {}}}},
           {"yolov8-seg", seg, {{{1, 39, 9000000000}, {}}, prototypes}},
           {"yolo-end-to-end-seg", seg, {{{1, 300, 37}, {}}, prototypes}},
           {"yolo-end-to-end-seg", seg, {{{1, 300, -1}, {}}, prototypes}},
           {"yolov8-pose", "pose", {{{1, 13, 100}, {}}}, 4, 2},  // the labels' number
           {"yolov8-pose", "pose", {{{1, 13, 100}, {}}}, 3, 4},  // the keypoints'
           {"yolov8-pose", "pose", {{{1, 13, 100}, {}}}, 3, 0},  // no names
           {"yolov8-pose", "pose", {{{1, 13, 100}, {}}}, 0, 2},  // no labels
           {"yolov8-pose", "pose", {{{1, 7 + 3 * 73, 100}, {}}}, 3, 73},
           {"yolo-end-to-end-pose", "pose", {{{1, 300, 14}, {}}}, 3, 2},
           {"yolo-end-to-end-pose", "pose", {{{1, 300, 12}, {}}, {{1, 300, 12}, {}}}, 3, 2},
           {"movenet", "pose", {{{1, 1, 17, 2}, {}}}, 1, 17},
           {"movenet", "pose", {{{1, 2, 17, 3}, {}}}, 1, 17},
           {"movenet", "pose", {{{1, 1, 17, 3}, {}}}, 1, 16},
           {"movenet", "pose", {{{1, 6, 56}, {}}}, 2, 17},  // MoveNet has one class
           {"movenet", "pose", {{{1, 6, 55}, {}}}, 1, 17},
           {"yolov8-obb", obb, {{{1, 9, 100}, {}}}},     //
           {"yolov8-obb", obb, {{{1, 5, 100}, {}}}, 0},  //
           {"yolov8-obb", obb, {{{8, 100}, {}}}},        //
           {"yolo-end-to-end-obb", obb, {{{1, 300, 6}, {}}}},
           {"yolo-end-to-end-obb", obb, {{{1, 9000000000, 7}, {}}}}}) {
    SCOPED_TRACE(
        str_format("{} {} {}", wrong.family, to_string(wrong.outputs[0].shape), wrong.labels));
    const auto decoder = create_decoder(
        manifest(wrong.family, wrong.task, wrong.outputs, wrong.labels, wrong.keypoints), {});
    ASSERT_FALSE(decoder);
    EXPECT_EQ(decoder.error().kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(decoder.error().message(), HasSubstr(str_format("'{}'", wrong.family)));
    EXPECT_THAT(decoder.error().message(), HasSubstr(to_string(wrong.outputs[0].shape)));
  }
}

TEST_P(P02, GivenRunsWithOtherShapesThanBound_WhenDecoded_ThenTheyAreRefused) {
  for (const Family& family : families()) {
    SCOPED_TRACE(family.name);
    std::vector<Output> outputs{family.rows(family.good)};
    outputs.insert(outputs.end(), family.more.begin(), family.more.end());
    const auto made = manifest(family.name, family.task, outputs, family.labels, family.keypoints);
    std::vector<Output> others = outputs;
    // One value less a row.
    std::vector<float> shorter = family.good;
    shorter.pop_back();
    others[0] = rows_of(shorter, family.width - 1, family.columns);
    EXPECT_FALSE(decode(made, others));
    if (family.more.empty()) continue;
    others = outputs;
    others[1] = {{1, 1, 8, 16}, std::vector<float>(128, 1.0f)};
    EXPECT_FALSE(decode(made, others));
    others[1] = {{1, 2, 8, 15}, std::vector<float>(240, 1.0f)};
    EXPECT_EQ(levels(decode(made, others), {1, 8, 15}).size(), 120u);
  }
}

// P03 ---------------------------------------------------------------------------------------------

class P03 : public Extras {};
INSTANTIATE_TEST_SUITE_P(cpu, P03, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, P03, ::testing::Values("sim"));

TEST_P(P03, GivenObjectsWithExtras_WhenDecoded_ThenOnlyCompactRecordsAreReadBack) {
  const CopyLedger& ledger = device_->ledger();
  for (const Family& family : families()) {
    for (const std::size_t objects : {0, 1, 3}) {
      SCOPED_TRACE(str_format("{} {}", family.name, objects));
      std::vector<float> rows;
      for (std::size_t i = 0; i < 3; ++i) {
        rows.insert(rows.end(), family.good.begin(), family.good.end());
        if (i >= objects) rows[i * family.width + family.score] = 0;
        for (const std::size_t x : family.xs) {
          rows[i * family.width + x] += static_cast<float>(i) * 128 / family.unit;
        }
      }
      const auto count = ledger.count(CopyClass::kReadback);
      const auto bytes = ledger.bytes(CopyClass::kReadback);
      const auto got = decode(family, rows);
      ASSERT_TRUE(got) << got.error().message();
      ASSERT_EQ(got->block.count, objects);
      const bool rotated = family.task == std::string("oriented-detection");
      const std::size_t extra = objects * (family.keypoints * 12 + (rotated ? 20 : 0));
      EXPECT_EQ(ledger.count(CopyClass::kReadback) - count, extra > 0 ? 2u : 1u);
      EXPECT_EQ(ledger.bytes(CopyClass::kReadback) - bytes, 7204 + extra);
      EXPECT_EQ(ledger.count(CopyClass::kTensor), 0u);
    }
  }
}

// P04 ---------------------------------------------------------------------------------------------

class P04 : public Extras {};
INSTANTIATE_TEST_SUITE_P(cpu, P04, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, P04, ::testing::Values("sim"));

TEST_P(P04, GivenPrototypesTooLargeForTheBudget_WhenMadeOrRun_ThenTheyAreRefused) {
  // 300 masks of 700 x 700 are 147 million bytes.
  const Output rows = rows_of({20, 10, 8, 4, 0, 0.9f, 0, 1}, 8, true);
  const std::vector<Output> fixed{rows, {{1, 1, 700, 700}, std::vector<float>(490000, 1.0f)}};
  const std::vector<Output> open{rows, {{1, 1, -1, -1}, {}}};
  const auto refused = create_decoder(manifest("yolov8-seg", "instance-segmentation", fixed), {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::kExhausted);
  EXPECT_THAT(refused.error().message(), HasSubstr("[1,1,700,700]"));
  const Manifest unknown = manifest("yolov8-seg", "instance-segmentation", open);
  const auto run = decode(unknown, fixed);
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().kind(), ErrorKind::kExhausted);
  const auto fewer = decode(unknown, fixed, {.max_objects = 3});
  ASSERT_TRUE(fewer) << fewer.error().message();
  EXPECT_EQ(levels(fewer, {1, 700, 700}).size(), 490000u);
}

TEST_P(P04, GivenFewObjects_WhenDecoded_ThenMasksAreAllocatedForTheseAlone) {
  // 300 masks of 200 x 200 are 12 million bytes, and the device has 1 million for all.
  constexpr std::size_t kPixels = 40000;
  const DeviceOptions small{.memory_budget = 1000000};
  device_ = GetParam() == std::string("sim") ? sim_test_device().open(small)
                                             : cpu_test_device().open(small);
  const Output prototypes{{1, 1, 200, 200}, std::vector<float>(kPixels, 1.0f)};
  const auto of_objects = [&](std::size_t count) {
    std::vector<float> rows;
    for (std::size_t i = 0; i < count; ++i) {
      const float x = 1.0f + 2.0f * static_cast<float>(i);
      rows.insert(rows.end(), {x, 10, 1, 4, 0, 0.9f, 0, 1});
    }
    return std::vector<Output>{rows_of(std::move(rows), 8, true), prototypes};
  };
  for (const std::size_t count : {1, 3}) {
    const auto outputs = of_objects(count);
    const auto got = decode(manifest("yolov8-seg", "instance-segmentation", outputs), outputs);
    ASSERT_TRUE(got) << got.error().message();
    ASSERT_EQ(got->block.count, count);
    EXPECT_EQ(got->device.masks->data.storage->size(), count * kPixels);
    const auto all = levels(got, {static_cast<std::int64_t>(count), 200, 200});
    // 255 / (1 + e^-1) in each object's own box of one pixel of the input.
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(all[i * kPixels + 62 * 200 + static_cast<std::size_t>(3 + 6 * i)], 186);
    }
  }
  const auto many = of_objects(30);
  const auto over = decode(manifest("yolov8-seg", "instance-segmentation", many), many);
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().kind(), ErrorKind::kExhausted);
  EXPECT_THAT(over.error().message(), HasSubstr("masks of 30 objects"));
}

}  // namespace
}  // namespace penstock
