// SPDX-License-Identifier: Apache-2.0
//
// The way from a model's input to the picture that it was made of, told for the same picture at
// another size.
#pragma once

#include "penstock/media/geometry.h"

namespace penstock {

/// What lies at a place of the model's input is at the same place of the picture, in pixels of a
/// frame of width x height (both at least 1). Exact for whole frames; the edges of a crop are
/// rounded to whole pixels, of which it keeps at least one. A way from no frame stays as it is.
Letterbox at_frame_size(Letterbox way, int width, int height);

}  // namespace penstock
