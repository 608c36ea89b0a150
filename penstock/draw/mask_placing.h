// SPDX-License-Identifier: Apache-2.0
//
// Where masks over a model's input lie in the source picture.
#pragma once

#include <cstddef>

#include "penstock/base/error.h"
#include "penstock/draw/draw_list.h"
#include "penstock/media/geometry.h"
#include "penstock/memory/tensor.h"
#include "penstock/records/records.h"

namespace penstock {

/// kInvalidArgument: `masks` is no uint8 tensor of `rank` dimensions, the last of which are height
/// and width, with its bytes behind it; or `way` is not from a picture of this size.
Result<MaskPlace> place_masks(const Tensor& masks, std::size_t rank, const Letterbox& way,
                              int width, int height);

/// The part of the picture that was looked at.
DrawBox crop_box(const Letterbox& way);
/// The same, no further than an object's box and what bilinear sampling adds to it.
DrawBox mask_box(const Letterbox& way, const MaskPlace& place, const Detection& object);

}  // namespace penstock
