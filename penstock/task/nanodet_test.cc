// SPDX-License-Identifier: Apache-2.0
#include "penstock/task/nanodet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "penstock/media/test_frames.h"
#include "penstock/memory/sim/sim_device.h"
#include "penstock/task/kernels/score_scan.h"
#include "penstock/task/test_nanodet.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using testing::NanodetOutputs;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// The decoder's own words in double, for one cell.
DetectionRecord oracle_cell(const NanodetOutputs& outputs, std::size_t head, int cell) {
  const int stride = NanodetOutputs::stride(head);
  const int columns = outputs.columns(head);
  const float* scores = &outputs.scores[head][std::size_t(cell) * std::size_t(outputs.classes)];
  const float* best = std::max_element(scores, scores + outputs.classes);
  double side[4];
  for (int s = 0; s < 4; ++s) {
    const float* logits = &outputs.boxes[head][std::size_t(cell) * 44 + std::size_t(s) * 11];
    double sum = 0, weighted = 0;
    for (int bin = 0; bin < 11; ++bin) {
      sum += std::exp(double(logits[bin]));
      weighted += bin * std::exp(double(logits[bin]));
    }
    side[s] = weighted / sum * stride;
  }
  const double x = (cell % columns + 0.5) * stride;
  const double y = (cell / columns + 0.5) * stride;
  return {
      float(x - side[0]),         float(y - side[1]), float(x + side[2]), float(y + side[3]), *best,
      std::int32_t(best - scores)};
}

Result<DetectionBlock> block_of(const Result<Decoded>& decoded) {
  if (!decoded) return std::unexpected(decoded.error());
  return decoded->block;
}

class Nanodet : public ::testing::TestWithParam<const char*> {
 protected:
  Result<DetectionBlock> decode(const NanodetOutputs& outputs, const DecodeOptions& options = {},
                                const std::vector<int>& order = {0, 1, 2, 3, 4, 5}, int item = 0) {
    auto decoder = create_decoder(outputs.manifest(), options);
    if (!decoder) return std::unexpected(decoder.error());
    return block_of((*decoder)->decode(*device_, outputs.upload(*device_, order), item));
  }
  const DevicePtr device_ = testing::make_device(GetParam());
};
INSTANTIATE_TEST_SUITE_P(cpu, Nanodet, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, Nanodet, ::testing::Values("sim"));

TEST_P(Nanodet, GivenRandomOutputs_WhenDecoded_ThenEveryBoxIsTheOracles) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> logit(-6, 6), score(0, 0.35f);
  NanodetOutputs outputs(160, 13);
  for (auto* tensors : {&outputs.boxes, &outputs.scores}) {
    for (auto& values : *tensors) {
      for (float& value : values) value = tensors == &outputs.boxes ? logit(random) : score(random);
    }
  }
  // A few winners at every stride, far enough apart not to overlap.
  std::vector<DetectionRecord> expected;
  for (const auto& [head, cell, class_id, value] :
       {std::tuple{0, 0, 3, 0.95f}, {0, 399, 12, 0.9f}, {1, 45, 0, 0.85f}, {2, 12, 7, 0.8f}}) {
    outputs.score(std::size_t(head), cell, class_id) = value;
    expected.push_back(oracle_cell(outputs, std::size_t(head), cell));
  }
  const auto block = decode(outputs, {.iou_threshold = 1.0f});
  ASSERT_TRUE(block) << block.error().message();
  ASSERT_EQ(block->count, expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const DetectionRecord& record = block->records[i];
    EXPECT_NEAR(record.x0, expected[i].x0, 1e-3) << i;
    EXPECT_NEAR(record.y0, expected[i].y0, 1e-3) << i;
    EXPECT_NEAR(record.x1, expected[i].x1, 1e-3) << i;
    EXPECT_NEAR(record.y1, expected[i].y1, 1e-3) << i;
    EXPECT_EQ(record.score, expected[i].score) << i;
    EXPECT_EQ(record.class_id, expected[i].class_id) << i;
  }
}

TEST_P(Nanodet, GivenOutputsInAnyOrder_WhenDecoded_ThenTheShapesTellThemApart) {
  NanodetOutputs outputs(416, 80);
  outputs.score(1, 100, 16) = 0.7f;
  outputs.set_box(1, 100, 1.5f, 2, 3, 4.25f);
  std::vector<int> order{0, 1, 2, 3, 4, 5};
  int orders = 0;
  do {
    if (orders++ % 60 != 0) continue;
    const auto block = decode(outputs, {}, order);
    ASSERT_TRUE(block) << block.error().message();
    ASSERT_EQ(block->count, 1u);
    // Cell 100 of a 26-column grid: row 3, column 22; centre (360, 56).
    EXPECT_FLOAT_EQ(block->records[0].x0, 360 - 24);
    EXPECT_FLOAT_EQ(block->records[0].y0, 56 - 32);
    EXPECT_FLOAT_EQ(block->records[0].x1, 360 + 48);
    EXPECT_FLOAT_EQ(block->records[0].y1, 56 + 68);
    EXPECT_EQ(block->records[0].class_id, 16);
  } while (std::ranges::next_permutation(order).found);
}

TEST_P(Nanodet, GivenABatch_WhenAnItemIsDecoded_ThenItIsThatItem) {
  NanodetOutputs outputs(64, 5, 3);
  for (int item = 0; item < 3; ++item) {
    outputs.score(0, 9 + item, item, item) = 0.6f;
    outputs.set_box(0, 9 + item, 1, 1, 1, 1, item);
  }
  for (int item = 0; item < 3; ++item) {
    const auto block = decode(outputs, {}, {0, 1, 2, 3, 4, 5}, item);
    ASSERT_TRUE(block);
    ASSERT_EQ(block->count, 1u);
    EXPECT_EQ(block->records[0].class_id, item);
    EXPECT_FLOAT_EQ(block->records[0].x0, float(1 + item) * 8 + 4 - 8);
  }
  EXPECT_FALSE(decode(outputs, {}, {0, 1, 2, 3, 4, 5}, 3));
  EXPECT_FALSE(decode(outputs, {}, {0, 1, 2, 3, 4, 5}, -1));
}

TEST_P(Nanodet, GivenAScoreAtTheThreshold_WhenDecoded_ThenItCountsAndOneBelowDoesNot) {
  NanodetOutputs outputs(64, 80);
  outputs.score(0, 3, 79) = 0.4f;
  outputs.score(0, 40, 79) = std::nextafter(0.4f, 0.0f);
  outputs.set_box(0, 3, 1, 1, 1, 1);
  outputs.set_box(0, 40, 1, 1, 1, 1);
  const auto block = decode(outputs, {.threshold = 0.4f});
  ASSERT_TRUE(block);
  ASSERT_EQ(block->count, 1u);
  EXPECT_EQ(block->records[0].score, 0.4f);
}

TEST_P(Nanodet, GivenEqualClasses_WhenDecoded_ThenTheFirstClassAndTheFirstCellWin) {
  NanodetOutputs outputs(64, 80);
  for (const int cell : {20, 21}) {
    outputs.score(0, cell, 9) = outputs.score(0, cell, 4) = 0.5f;
    outputs.set_box(0, cell, 4, 4, 4, 4);
  }
  const auto block = decode(outputs, {.iou_threshold = 0.3f});
  ASSERT_TRUE(block);
  ASSERT_EQ(block->count, 1u);
  EXPECT_EQ(block->records[0].class_id, 4);
  EXPECT_FLOAT_EQ(block->records[0].x0, (20 % 8) * 8 + 4 - 32);
}

// P03 -------------------------------------------------------------------------------------------

class P03 : public Nanodet {};
INSTANTIATE_TEST_SUITE_P(cpu, P03, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, P03, ::testing::Values("sim"));

TEST_P(P03, GivenOutputs_WhenDecoded_ThenOnlyTheRecordsAreReadBack) {
  NanodetOutputs outputs(416, 80);
  outputs.score(0, 1000, 2) = 0.9f;
  outputs.set_box(0, 1000, 1, 1, 1, 1);
  const auto tensors = outputs.upload(*device_);
  const auto decoder = create_decoder(outputs.manifest(), {});
  ASSERT_TRUE(decoder);
  const CopyLedger& ledger = device_->ledger();
  const auto uploads = ledger.count(CopyClass::kUpload);
  for (int frame = 1; frame <= 3; ++frame) {
    const auto block = block_of((*decoder)->decode(*device_, tensors));
    ASSERT_TRUE(block);
    ASSERT_EQ(block->count, 1u);
    EXPECT_EQ(ledger.count(CopyClass::kReadback), std::uint64_t(frame));
    EXPECT_EQ(ledger.bytes(CopyClass::kReadback), 7204u * std::uint64_t(frame));
    EXPECT_EQ(ledger.count(CopyClass::kTensor), 0u);
    EXPECT_EQ(ledger.count(CopyClass::kUpload), uploads);
  }
}

TEST_P(P03, GivenAFullBlockBefore_WhenFewerObjectsFollow_ThenTheRestOfTheBlockIsZero) {
  NanodetOutputs outputs(416, 80);
  const auto decoder = create_decoder(outputs.manifest(), {.threshold = 0.005f});
  ASSERT_TRUE(decoder);
  ASSERT_EQ((*decoder)->decode(*device_, outputs.upload(*device_))->block.count, 300u);
  for (auto& values : outputs.scores) std::ranges::fill(values, 0.0f);
  const auto block = block_of((*decoder)->decode(*device_, outputs.upload(*device_)));
  ASSERT_TRUE(block);
  EXPECT_EQ(block->count, 0u);
  for (const DetectionRecord& record : block->records) EXPECT_EQ(record.score, 0);
}

TEST_P(P03, GivenOutputsThatFailed_WhenDecoded_ThenTheirErrorComesBack) {
  NanodetOutputs outputs(64, 4);
  auto tensors = outputs.upload(*device_);
  FenceSource engine;
  tensors[4].ready = engine.fence();
  engine.signal(fail(ErrorKind::kDevice, "the engine broke"));
  const auto decoder = create_decoder(outputs.manifest(), {});
  ASSERT_TRUE(decoder);
  const auto block = block_of((*decoder)->decode(*device_, tensors));
  ASSERT_FALSE(block);
  EXPECT_THAT(block.error().message(), HasSubstr("the engine broke"));
}

// P04 -------------------------------------------------------------------------------------------

TEST(P04, GivenNanAndInfiniteScores_WhenDecoded_ThenTheyNeverWin) {
  for (const char* name : {"cpu", "sim"}) {
    const auto device = testing::make_device(name);
    for (const float poison : {kNan, -kNan, kInf, -kInf}) {
      NanodetOutputs outputs(96, 80);
      for (std::size_t head = 0; head < 3; ++head) {
        std::ranges::fill(outputs.scores[head], poison);
        std::ranges::fill(outputs.boxes[head], poison);
      }
      // One honest object among them, another with a poisoned box.
      outputs.score(0, 30, 77) = 0.6f;
      outputs.set_box(0, 30, 2, 2, 2, 2);
      outputs.score(0, 60, 5) = 0.9f;
      const auto decoder = create_decoder(outputs.manifest(), {});
      ASSERT_TRUE(decoder);
      const auto block = block_of((*decoder)->decode(*device, outputs.upload(*device)));
      ASSERT_TRUE(block);
      ASSERT_EQ(block->count, 1u) << name << " " << poison;
      EXPECT_EQ(block->records[0].class_id, 77);
      EXPECT_EQ(block->records[0].score, 0.6f);
    }
  }
}

TEST(P04, GivenAnInputWithTooManyCells_WhenTheDecoderIsMade_ThenItIsRefused) {
  Manifest manifest = NanodetOutputs(416, 80).manifest();
  manifest.preprocess.width = manifest.preprocess.height = 32766;
  const auto refused = create_decoder(manifest, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::kExhausted);
}

// Shapes that do not fit ------------------------------------------------------------------------

std::string refusal(const Manifest& manifest) {
  const auto decoder = create_decoder(manifest, {});
  return decoder ? "accepted" : decoder.error().message();
}

TEST(NanodetShapes, GivenOutputsThatDoNotFit_WhenTheDecoderIsMade_ThenTheyAreNamed) {
  const Manifest good = NanodetOutputs(416, 80).manifest();
  EXPECT_EQ(refusal(good), "accepted");

  Manifest five = good;
  five.outputs.pop_back();
  EXPECT_THAT(refusal(five), HasSubstr("5 outputs instead of 6"));
  EXPECT_THAT(refusal(five), HasSubstr("[-1,2704,80]"));

  Manifest other_size = good;
  other_size.preprocess.width = 320;
  EXPECT_THAT(refusal(other_size), HasSubstr("stride 8"));

  Manifest classes = good;
  classes.outputs[1].dims[2] = Dimension::fixed(79);
  EXPECT_THAT(refusal(classes), HasSubstr("number of classes"));

  Manifest bins = good;
  bins.outputs[3].dims[2] = Dimension::fixed(32);
  EXPECT_THAT(refusal(bins), HasSubstr("[batch,2704,44]"));

  Manifest labels = good;
  labels.labels.pop_back();
  EXPECT_THAT(refusal(labels), HasSubstr("79 labels for 80 classes"));

  Manifest no_size = good;
  no_size.preprocess.width = 0;
  EXPECT_THAT(refusal(no_size), HasSubstr("no input size"));

  Manifest tiny = NanodetOutputs(8, 80).manifest();
  EXPECT_THAT(refusal(tiny), HasSubstr("too small"));
}

TEST(NanodetShapes, GivenTensorsThatDifferFromTheManifest_WhenDecoded_ThenTheyAreRefused) {
  const auto device = testing::make_device("cpu");
  const NanodetOutputs outputs(64, 4);
  const auto decoder = create_decoder(outputs.manifest(), {});
  ASSERT_TRUE(decoder);
  const auto refused = [&](auto change) {
    auto tensors = outputs.upload(*device);
    change(tensors);
    return !(*decoder)->decode(*device, tensors);
  };
  EXPECT_FALSE(refused([](auto&) {}));
  EXPECT_TRUE(refused([](auto& t) { t.pop_back(); }));
  EXPECT_TRUE(refused([](auto& t) { t[0].type = DataType::kInt32; }));
  EXPECT_TRUE(refused([](auto& t) { t[2].data.size -= 4; }));
  EXPECT_TRUE(refused([](auto& t) { t[2].shape = {1, 4, 5}; }));
  EXPECT_TRUE(refused([](auto& t) { t[5].shape[1] = 5; }));
  EXPECT_TRUE(refused([](auto& t) { t[1].data.storage = nullptr; }));
  EXPECT_TRUE(refused([](auto& t) { t[0].shape[0] = 1LL << 60; }));
}

// The scan --------------------------------------------------------------------------------------

TEST(ScoreScan, GivenEveryClassCount_WhenScanned_ThenExactlyThePositionsWithAHitAreFound) {
  std::mt19937 random(9);
  std::uniform_real_distribution<float> score(0, 1);
  for (std::size_t classes = 1; classes <= 90; ++classes) {
    std::vector<float> scores(classes * 50);
    std::vector<std::int32_t> expected;
    for (std::size_t position = 0; position < 50; ++position) {
      bool hit = false;
      for (std::size_t c = 0; c < classes; ++c) {
        float& value = scores[position * classes + c];
        value = std::pow(score(random), 20.0f);
        if (c % 11 == 3) value = kNan;
        hit |= value >= 0.5f;
      }
      if (hit) expected.push_back(static_cast<std::int32_t>(position));
    }
    std::vector<std::int32_t> found;
    scan_scores(scores, classes, 0.5f, found);
    ASSERT_EQ(found, expected) << classes << " classes";
  }
}

}  // namespace
}  // namespace penstock
