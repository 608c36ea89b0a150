// SPDX-License-Identifier: Apache-2.0
//
// Several frames' tensors as one batch tensor, made on the device (contract B01): device-to-device
// copies into the slots, and in the slots that are left over the level of the letterbox's padding,
// normalised like a pixel.
#pragma once

#include <span>
#include <vector>

#include "penstock/media/preprocessor.h"
#include "penstock/memory/device.h"
#include "penstock/memory/tensor.h"

namespace penstock {

/// `items` are tensors of batch 1 made with `spec`, 1 <= items.size() <= slots. A single item for a
/// single slot is passed through without a copy. Fences of all device work that was submitted, also
/// before a failure, are added to `in_flight`.
Result<Tensor> assemble_batch(Device& device, std::span<const Tensor> items, std::size_t slots,
                              const PreprocessSpec& spec, std::vector<Fence>& in_flight);

}  // namespace penstock
