// SPDX-License-Identifier: Apache-2.0
#include "penstock/task/test_nanodet.h"

#include <cmath>
#include <span>
#include <string>

namespace penstock::testing {
namespace {

std::size_t at(int n) { return static_cast<std::size_t>(n); }

}  // namespace

NanodetOutputs::NanodetOutputs(int input_size, int class_count, int batch_size)
    : input(input_size), classes(class_count), batch(batch_size) {
  for (std::size_t head = 0; head < 3; ++head) {
    const std::size_t cells = at(columns(head)) * at(columns(head)) * at(batch);
    scores.emplace_back(cells * at(classes), 0.01f);
    boxes.emplace_back(cells * 44, 0.0f);
  }
}

float& NanodetOutputs::score(std::size_t head, int cell, int class_id, int item) {
  const int cells = columns(head) * columns(head);
  return scores[head][at(item * cells + cell) * at(classes) + at(class_id)];
}

float* NanodetOutputs::logits(std::size_t head, int cell, int item) {
  const int cells = columns(head) * columns(head);
  return &boxes[head][at(item * cells + cell) * 44];
}

void NanodetOutputs::set_box(std::size_t head, int cell, float left, float top, float right,
                             float bottom, int item) {
  float* side = logits(head, cell, item);
  for (const float distance : {left, top, right, bottom}) {
    // All weight on the two bins around the distance.
    const auto bin = static_cast<int>(distance);
    const float fraction = distance - static_cast<float>(bin);
    for (int i = 0; i < 11; ++i) side[i] = -200;
    side[bin] = std::log(1 - fraction);
    if (fraction > 0) side[bin + 1] = std::log(fraction);
    side += 11;
  }
}

std::vector<Tensor> NanodetOutputs::upload(Device& device, const std::vector<int>& order) const {
  std::vector<Tensor> tensors;
  for (const int which : order) {
    const std::size_t head = at(which % 3);
    const std::vector<float>& values = which < 3 ? scores[head] : boxes[head];
    Tensor tensor;
    tensor.name = "output_" + std::to_string(which);
    tensor.shape = {batch, columns(head) * columns(head), which < 3 ? classes : 44};
    const auto bytes = std::as_bytes(std::span(values));
    // value(): a fixture that can't be made ends the test program.
    tensor.data = {
        .storage = device.allocate(bytes.size()).value(), .offset = 0, .size = bytes.size()};
    device.upload(tensor.data, bytes, TransferPurpose::kTestContent).value();
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Manifest NanodetOutputs::manifest() const {
  Manifest manifest;
  manifest.name = "nanodet";
  manifest.task = "detection";
  manifest.family = "nanodet";
  manifest.preprocess.width = input;
  manifest.preprocess.height = input;
  for (int which = 0; which < 6; ++which) {
    const int cells = columns(at(which % 3)) * columns(at(which % 3));
    TensorSpec& spec = manifest.outputs.emplace_back();
    spec.dims = {{.minimum = 1, .maximum = 64, .symbol = "batch"},
                 Dimension::fixed(cells),
                 Dimension::fixed(which < 3 ? classes : 44)};
  }
  for (int i = 0; i < classes; ++i) manifest.labels.push_back("class-" + std::to_string(i));
  return manifest;
}

}  // namespace penstock::testing
