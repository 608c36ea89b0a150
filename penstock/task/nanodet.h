// SPDX-License-Identifier: Apache-2.0
//
// NanoDet: anchor-free, one prediction a cell of the grids of strides 8, 16 and 32. Six outputs in
// any order, told apart by shape: per stride class scores [batch, cells, classes] (sigmoid applied)
// and box distributions [batch, cells, 44]: for left, top, right, bottom the logits of 11 bins,
// whose expectation times the stride is the distance of that side from the cell's centre.
#pragma once

#include <memory>

#include "penstock/task/output_decoder.h"

namespace penstock {

/// kInvalidArgument: outputs or labels that do not fit, named with their shapes. kExhausted: more
/// cells than the decoder's budget (P04).
Result<std::unique_ptr<OutputDecoder>> create_nanodet_decoder(const Manifest& manifest,
                                                              const DecodeOptions& options);

}  // namespace penstock
