// SPDX-License-Identifier: Apache-2.0
//
// For tests of families that say more than boxes: outputs written down by hand, decoded on a
// device.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/media/test_frames.h"
#include "penstock/task/output_decoder.h"

namespace penstock::testing {

struct Output {
  Shape shape;
  std::vector<float> values;
};

/// Rows of `width` values as one output of one batch item, by rows or by columns.
inline Output rows_of(std::vector<float> rows, std::size_t width, bool columns) {
  const std::size_t count = rows.size() / width;
  const auto w = static_cast<std::int64_t>(width), n = static_cast<std::int64_t>(count);
  if (!columns) return {{1, n, w}, std::move(rows)};
  std::vector<float> turned(rows.size());
  for (std::size_t r = 0; r < count; ++r) {
    for (std::size_t c = 0; c < width; ++c) turned[c * count + r] = rows[r * width + c];
  }
  return {{1, w, n}, std::move(turned)};
}

/// Both outputs' items in one batch.
inline Output batched(const Output& a, const Output& b) {
  Output both{a.shape, a.values};
  both.shape[0] = 2;
  both.values.insert(both.values.end(), b.values.begin(), b.values.end());
  return both;
}

/// A family with one row that is an object of score 0.9, for what all families have in common.
struct Family {
  const char* name;
  const char* task;
  std::size_t width;
  std::vector<float> good;
  std::vector<std::size_t> xs;  ///< Which of its values are positions along x.
  std::size_t score;            ///< Which value makes its score.
  bool columns = false;
  int labels = 3;
  std::size_t keypoints = 0;
  std::vector<Output> more{};  ///< Outputs behind the rows.
  float unit = 1;              ///< Pixels of one unit of x.
  Output rows(std::vector<float> values) const {
    return rows_of(std::move(values), width, columns);
  }
};

inline std::vector<Family> families() {
  const Output prototypes{{1, 2, 8, 16}, std::vector<float>(256, 1.0f)};
  return {
      {"yolov8-seg",
       "instance-segmentation",
       9,
       {20, 10, 8, 4, 0, 0.9f, 0, 1, 1},
       {0},
       5,
       true,
       3,
       0,
       {prototypes}},
      {"yolo-end-to-end-seg",
       "instance-segmentation",
       8,
       {16, 8, 24, 12, 0.9f, 1, 1, 1},
       {0, 2},
       4,
       false,
       3,
       0,
       {prototypes}},
      {"yolov8-pose",
       "pose",
       13,
       {20, 10, 8, 4, 0, 0.9f, 0, 18, 9, 0.5f, 22, 11, 0.25f},
       {0, 7, 10},
       5,
       true,
       3,
       2},
      {"yolo-end-to-end-pose",
       "pose",
       10,
       {16, 8, 24, 12, 0.9f, 1, 18, 9, 22, 11},
       {0, 2, 6, 8},
       4,
       false,
       3,
       2},
      {"movenet",
       "pose",
       11,
       {0.5f, 0.25f, 0.5f, 0.5f, 0.5f, 0.25f, 0.25f, 0.25f, 0.5f, 0.5f, 0.9f},
       {1, 4, 7, 9},
       10,
       false,
       1,
       2,
       {},
       64},
      {"yolov8-obb", "oriented-detection", 8, {20, 10, 8, 4, 0, 0.9f, 0, 0.3f}, {0}, 5, true},
      {"yolo-end-to-end-obb", "oriented-detection", 7, {20, 10, 8, 4, 0.9f, 1, 0.3f}, {0}, 4},
  };
}

class Extras : public ::testing::TestWithParam<const char*> {
 protected:
  /// The model's input is 64 x 32.
  static Manifest manifest(const std::string& family, const std::string& task,
                           const std::vector<Output>& outputs, int labels = 3,
                           std::size_t keypoints = 0) {
    Manifest manifest;
    manifest.name = "by-hand";
    manifest.task = task;
    manifest.family = family;
    for (int i = 0; i < labels; ++i) manifest.labels.push_back(str_format("class{}", i));
    for (std::size_t i = 0; i < keypoints; ++i) manifest.keypoints.push_back(str_format("k{}", i));
    manifest.preprocess.width = 64;
    manifest.preprocess.height = 32;
    for (const Output& output : outputs) {
      TensorSpec& spec = manifest.outputs.emplace_back();
      spec.name = str_format("out{}", manifest.outputs.size());
      for (const std::int64_t side : output.shape) {
        spec.dims.push_back(side < 0 ? Dimension{1, 10000, "s"} : Dimension::fixed(side));
      }
    }
    return manifest;
  }

  Result<Decoded> decode(const Manifest& manifest, const std::vector<Output>& outputs,
                         const DecodeOptions& options = {}, int item = 0) {
    auto decoder = create_decoder(manifest, options);
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
    return (*decoder)->decode(*device_, tensors, item);
  }
  Result<Decoded> decode(const Family& family, std::vector<float> rows,
                         const DecodeOptions& options = {}) {
    std::vector<Output> outputs{family.rows(std::move(rows))};
    outputs.insert(outputs.end(), family.more.begin(), family.more.end());
    return decode(manifest(family.name, family.task, outputs, family.labels, family.keypoints),
                  outputs, options);
  }

  static void expect_boxes(const Result<Decoded>& got, const std::vector<DetectionRecord>& wanted) {
    ASSERT_TRUE(got) << got.error().message();
    ASSERT_EQ(got->block.count, wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      SCOPED_TRACE(i);
      const DetectionRecord& record = got->block.records[i];
      EXPECT_NEAR(record.x0, wanted[i].x0, 1e-4);
      EXPECT_NEAR(record.y0, wanted[i].y0, 1e-4);
      EXPECT_NEAR(record.x1, wanted[i].x1, 1e-4);
      EXPECT_NEAR(record.y1, wanted[i].y1, 1e-4);
      EXPECT_FLOAT_EQ(record.score, wanted[i].score);
      EXPECT_EQ(record.class_id, wanted[i].class_id);
    }
  }

  static void expect_keypoints(const Result<Decoded>& got, std::size_t per_object,
                               const std::vector<KeypointRecord>& wanted) {
    ASSERT_TRUE(got) << got.error().message();
    EXPECT_EQ(got->keypoints_per_object, per_object);
    ASSERT_EQ(got->keypoints.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      SCOPED_TRACE(i);
      EXPECT_FLOAT_EQ(got->keypoints[i].x, wanted[i].x);
      EXPECT_FLOAT_EQ(got->keypoints[i].y, wanted[i].y);
      EXPECT_FLOAT_EQ(got->keypoints[i].score, wanted[i].score);
    }
  }

  /// The masks' levels, by a transfer that only tests may make.
  std::vector<std::uint8_t> levels(const Result<Decoded>& got, const Shape& shape) {
    if (!got || !got->device.masks) {
      ADD_FAILURE() << (got ? "no masks" : got.error().message());
      return {};
    }
    const Tensor& masks = *got->device.masks;
    EXPECT_EQ(masks.type, DataType::kUint8);
    EXPECT_EQ(to_string(masks.shape), to_string(shape));
    std::vector<std::uint8_t> bytes(masks.data.size);
    const auto read = device_->read_back(std::as_writable_bytes(std::span(bytes)), masks.data,
                                         {masks.ready}, TransferPurpose::kTestContent);
    EXPECT_TRUE(read) << read.error().message();
    return bytes;
  }

  DevicePtr device_ = make_device(GetParam());
};

}  // namespace penstock::testing
