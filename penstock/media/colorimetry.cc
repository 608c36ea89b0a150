// SPDX-License-Identifier: Apache-2.0
#include "penstock/media/colorimetry.h"

namespace penstock {

YuvCoefficients yuv_coefficients(ColorMatrix matrix, ColorRange range) {
  // Luma weights of BT.601 and BT.709; everything else follows from them.
  const double kr = matrix == ColorMatrix::kBt709 ? 0.2126 : 0.299;
  const double kb = matrix == ColorMatrix::kBt709 ? 0.0722 : 0.114;
  const double kg = 1.0 - kr - kb;
  const bool limited = range == ColorRange::kLimited;
  const double luma = limited ? 255.0 / 219.0 : 1.0;
  const double chroma = limited ? 255.0 / 224.0 : 1.0;
  return {
      .y_offset = limited ? 16.0f : 0.0f,
      .y_scale = static_cast<float>(luma),
      .r_v = static_cast<float>(2.0 * (1.0 - kr) * chroma),
      .g_u = static_cast<float>(-2.0 * (1.0 - kb) * kb / kg * chroma),
      .g_v = static_cast<float>(-2.0 * (1.0 - kr) * kr / kg * chroma),
      .b_u = static_cast<float>(2.0 * (1.0 - kb) * chroma),
  };
}

}  // namespace penstock
