// SPDX-License-Identifier: Apache-2.0
//
// What the session suites share: a manifest around generated ONNX bytes, and tensors on a device.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/memory/device.h"
#include "penstock/model/manifest.h"
#include "penstock/model/session.h"
#include "penstock/model/testing/onnx_builder.h"
#include "penstock/model/testing/temporary_folder.h"

namespace penstock::model_testing {

/// A manifest as load_manifest would give it for `onnx`, for models that detect nothing.
inline Manifest bare_manifest(const TemporaryFolder& folder, const std::string& onnx,
                              std::vector<TensorSpec> inputs, std::vector<TensorSpec> outputs) {
  Manifest manifest;
  manifest.name = "tiny";
  manifest.folder = folder.path();
  manifest.artefact = folder.write("model.onnx", onnx);
  manifest.artefact_sha256 = sha256_file(manifest.artefact).value();
  manifest.engine = "onnxruntime";
  manifest.inputs = std::move(inputs);
  manifest.outputs = std::move(outputs);
  return manifest;
}

template <typename T>
Tensor make_tensor(Device& device, std::string name, DataType type, Shape shape,
                   const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  auto storage = device.allocate(bytes.size());
  if (!storage) {
    ADD_FAILURE() << storage.error().message();
    return {};
  }
  StorageRegion region{*storage, 0, bytes.size()};
  const auto uploaded = device.upload(region, bytes, TransferPurpose::kTestContent);
  EXPECT_TRUE(uploaded) << uploaded.error().message();
  return {.name = std::move(name),
          .type = type,
          .shape = std::move(shape),
          .data = region,
          .ready = {}};
}

inline Tensor floats(Device& device, std::string name, Shape shape,
                     const std::vector<float>& values) {
  return make_tensor(device, std::move(name), DataType::kFloat32, std::move(shape), values);
}

/// Waits for the tensor and reads it back.
template <typename T = float>
std::vector<T> values_of(Device& device, const Tensor& tensor) {
  std::vector<T> values(tensor.data.size / sizeof(T));
  const auto read = device.read_back(std::as_writable_bytes(std::span(values)), tensor.data,
                                     {tensor.ready}, TransferPurpose::kTestContent);
  EXPECT_TRUE(read) << read.error().message();
  return values;
}

/// y = a + b over [N,2], N in 1..4.
inline std::string add_model() {
  return OnnxBuilder()
      .input("a", DataType::kFloat32, {"N", 2})
      .input("b", DataType::kFloat32, {"N", 2})
      .output("y", DataType::kFloat32, {"N", 2})
      .node("Add", {"a", "b"}, {"y"})
      .build();
}

inline TensorSpec rows_of_two(std::string name) {
  return {
      std::move(name), DataType::kFloat32, TensorLayout::kAny, {{1, 4, "N"}, Dimension::fixed(2)}};
}

}  // namespace penstock::model_testing
