// SPDX-License-Identifier: Apache-2.0
//
// ConstantInputs: the inputs of a model that get the same numbers in every run (manifest key
// "constants"), as tensors on the device for a batch of any size. Made once a size and kept.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "penstock/memory/device.h"
#include "penstock/memory/tensor.h"
#include "penstock/model/manifest.h"

namespace penstock {

/// Not thread-safe (workers have their own).
class ConstantInputs {
 public:
  /// Every input but `picture` must have its constant, whose numbers fit its shape and type, and
  /// for a batch of `most_slots` the limit of what may be uploaded (contract A01).
  /// kUnsupported names an input without one, kInvalidArgument what does not fit.
  static Result<ConstantInputs> create(std::span<const TensorSpec> inputs, const Manifest& manifest,
                                       std::size_t most_slots);

  /// For a batch of `slots`, at most `most_slots`; uploaded the first time
  /// (TransferPurpose::kMetadata).
  Result<std::span<const Tensor>> get(Device& device, std::size_t slots);

 private:
  struct Input {
    TensorSpec spec;
    std::vector<std::byte> item;  ///< The numbers in the input's type, once.
    bool is_batched = false;      ///< The first dimension is the batch's.
  };
  std::vector<Input> inputs_;
  std::map<std::size_t, std::vector<Tensor>> made_;  ///< By slots; batches have few sizes.
};

}  // namespace penstock
