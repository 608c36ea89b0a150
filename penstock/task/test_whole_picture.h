// SPDX-License-Identifier: Apache-2.0
//
// Outputs written down by hand, decoded by the families of the whole picture on every device. Tests
// only.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/media/test_frames.h"
#include "penstock/task/whole_picture.h"

namespace penstock {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr auto kReadAll = DecodeOptions{.threshold = 0};

struct Output {
  DataType type = DataType::kFloat32;
  Shape shape;
  std::vector<std::byte> bytes;
};

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}
inline Output floats(Shape shape, const std::vector<float>& values) {
  return {DataType::kFloat32, std::move(shape), bytes_of(values)};
}
inline Output longs(Shape shape, const std::vector<std::int64_t>& values) {
  return {DataType::kInt64, std::move(shape), bytes_of(values)};
}

inline Manifest manifest_of(const std::string& task, const std::vector<Output>& outputs,
                            int labels) {
  Manifest manifest;
  manifest.name = "by-hand";
  manifest.task = task;
  manifest.family = task == "semantic-segmentation" ? "semantic"
                    : task == "text-recognition"    ? "ctc"
                                                    : task;
  for (int i = 0; i < labels; ++i) manifest.labels.push_back(str_format("class{}", i));
  for (const Output& output : outputs) {
    TensorSpec& spec = manifest.outputs.emplace_back();
    spec.name = str_format("out{}", manifest.outputs.size());
    spec.type = output.type;
    for (const std::int64_t side : output.shape) spec.dims.push_back(Dimension::fixed(side));
  }
  return manifest;
}

class WholePicture : public ::testing::TestWithParam<const char*> {
 protected:
  std::vector<Tensor> upload(const std::vector<Output>& outputs) {
    std::vector<Tensor> tensors;
    for (const Output& output : outputs) {
      const auto storage = device_->allocate(output.bytes.size());
      EXPECT_TRUE(storage);
      if (!storage) return {};
      const StorageRegion region{*storage, 0, output.bytes.size()};
      EXPECT_TRUE(device_->upload(region, output.bytes, TransferPurpose::kTestContent));
      tensors.push_back({.name = str_format("out{}", tensors.size() + 1),
                         .type = output.type,
                         .shape = output.shape,
                         .data = region,
                         .ready = {}});
    }
    return tensors;
  }

  Result<Decoded> decode(const Manifest& manifest, const std::vector<Output>& outputs,
                         const DecodeOptions& options = kReadAll, int item = 0,
                         const Letterbox* letterbox = nullptr) {
    auto decoder = create_decoder(manifest, options);
    if (!decoder) return std::unexpected(decoder.error());
    const auto tensors = upload(outputs);
    return (*decoder)->decode(*device_, tensors, item, letterbox);
  }

  std::vector<std::uint8_t> map_of(const Decoded& decoded) {
    if (!decoded.device.class_map) return {};
    const Tensor& map = *decoded.device.class_map;
    std::vector<std::uint8_t> pixels(map.data.size);
    EXPECT_TRUE(device_->read_back(std::as_writable_bytes(std::span(pixels)), map.data, {map.ready},
                                   TransferPurpose::kTestContent));
    return pixels;
  }

  const DevicePtr device_ = testing::make_device(GetParam());
};
class P02 : public WholePicture {};
class P03 : public WholePicture {};
class P04 : public WholePicture {};

inline std::string message_of(const Result<Decoded>& result) {
  return result ? std::string("decoded") : result.error().message();
}

}  // namespace penstock
