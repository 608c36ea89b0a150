// SPDX-License-Identifier: Apache-2.0
//
// Colorimetry of 8-bit 4:2:0 video as caps declare it, and the YCbCr -> RGB coefficients it means.
#pragma once

namespace penstock {

enum class ColorMatrix { kBt601, kBt709 };
enum class ColorRange { kLimited, kFull };
/// Horizontal position of chroma samples: co-sited with the left luma sample or centred between two
/// (JPEG). Vertically both are centred. Undeclared is left (contract V17).
enum class ChromaSite { kLeft, kCenter };

/// The defaults are what undeclared means: BT.709 limited, left (contract V02).
struct Colorimetry {
  ColorMatrix matrix = ColorMatrix::kBt709;
  ColorRange range = ColorRange::kLimited;
  ChromaSite site = ChromaSite::kLeft;
  bool operator==(const Colorimetry&) const = default;
};

/// R = y_scale (Y - y_offset) + r_v (V - 128); G = .. + g_u (U - 128) + g_v (V - 128); B = .. + b_u
/// (U - 128), in levels 0..255 before clamping.
struct YuvCoefficients {
  float y_offset, y_scale, r_v, g_u, g_v, b_u;
};
YuvCoefficients yuv_coefficients(ColorMatrix matrix, ColorRange range);

}  // namespace penstock
