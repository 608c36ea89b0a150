// SPDX-License-Identifier: Apache-2.0
//
// For tests and benchmarks: NanoDet outputs with planted objects, on any device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "penstock/memory/device.h"
#include "penstock/memory/tensor.h"
#include "penstock/model/manifest.h"

namespace penstock::testing {

struct NanodetOutputs {
  int input = 416;
  int classes = 80;
  int batch = 1;
  /// Per stride, [batch][cells][classes] and [batch][cells][44].
  std::vector<std::vector<float>> scores, boxes;

  NanodetOutputs(int input_size, int class_count, int batch_size = 1);
  static int stride(std::size_t head) { return 8 << head; }
  int columns(std::size_t head) const { return (input + stride(head) - 1) / stride(head); }
  float& score(std::size_t head, int cell, int class_id, int item = 0);
  /// Plants logits whose expectation is `distance` strides (0..10) for each of the four sides.
  void set_box(std::size_t head, int cell, float left, float top, float right, float bottom,
               int item = 0);
  float* logits(std::size_t head, int cell, int item = 0);

  /// Six tensors on `device`, in the order of `order` (indices 0..2 scores, 3..5 boxes).
  std::vector<Tensor> upload(Device& device,
                             const std::vector<int>& order = {0, 1, 2, 3, 4, 5}) const;
  Manifest manifest() const;
};

}  // namespace penstock::testing
