// SPDX-License-Identifier: Apache-2.0
//
// The glyphs as strokes on a grid: x from 0 to `width`, y from 0 (top of capitals) over 4 (top of
// small letters) to 14 (the line) and 18 (what hangs below). Coordinates are digits, a = 10 to
// i = 18. A stroke is a row of points "xy", joined by straight lines; a point behind a `*` is
// passed by in a curve (the control point of a quadratic Bezier curve) from the point before to the
// one behind. One point alone is a dot. Space between strokes.
#pragma once

#include <array>
#include <string_view>

namespace penstock {

struct GlyphStrokes {
  char character;
  int width;
  std::string_view strokes;
};

/// The first is the substitute.
inline constexpr std::array kGlyphStrokes{
    GlyphStrokes{'\0', 8, "000e8e8000"},
    GlyphStrokes{' ', 3, ""},
    GlyphStrokes{'#', 10, "402e 806e 14a4 0999"},
    GlyphStrokes{'%', 12, "20*4043*4626*0603*0020 a02e a8*c8cb*ceae*8e8b*88a8"},
    GlyphStrokes{'(', 3, "30*0308*0d3g"},
    GlyphStrokes{')', 3, "00*3338*3d0g"},
    GlyphStrokes{'+', 8, "0989 454d"},
    GlyphStrokes{'-', 5, "0959"},
    GlyphStrokes{'.', 0, "0d0e"},
    GlyphStrokes{'/', 6, "600e"},
    GlyphStrokes{'0', 8, "40*8087*8e4e*0e07*0040"},
    GlyphStrokes{'1', 8, "23505e"},
    GlyphStrokes{'2', 8, "03*0040*8084*87590e8e"},
    GlyphStrokes{'3', 8, "03*0040*8083*8747 37 47*878a*8e4e*0e0b"},
    GlyphStrokes{'4', 8, "6e600a8a"},
    GlyphStrokes{'5', 8, "801007*2545*858a*8e4e*0e0b"},
    GlyphStrokes{'6', 8, "72*7040*00080a*0e4e*8e8a*8646*060a"},
    GlyphStrokes{'7', 8, "00803e"},
    GlyphStrokes{'8', 8, "40*7073*7747*1713*1040 47*878a*8e4e*0e0a*0747"},
    GlyphStrokes{'9', 8, "1c*1e4e*8e8684*8040*0004*0848*8884"},
    GlyphStrokes{':', 0, "0506 0d0e"},
    GlyphStrokes{'A', 10, "0e50ae 2989"},
    GlyphStrokes{'B', 9, "000e 0050*8083*875707 57*979a*9e5e0e"},
    GlyphStrokes{'C', 9, "93*9050*0007*0e5e*9e9b"},
    GlyphStrokes{'D', 10, "000e 0040*a0a7*ae4e0e"},
    GlyphStrokes{'E', 8, "80000e8e 0767"},
    GlyphStrokes{'F', 8, "80000e 0767"},
    GlyphStrokes{'G', 10, "a3*a050*0007*0e5e*aea767"},
    GlyphStrokes{'H', 9, "000e 909e 0797"},
    GlyphStrokes{'I', 0, "000e"},
    GlyphStrokes{'J', 7, "707a*7e3e*0e0b"},
    GlyphStrokes{'K', 9, "000e 9009 369e"},
    GlyphStrokes{'L', 7, "000e7e"},
    GlyphStrokes{'M', 12, "0e006ac0ce"},
    GlyphStrokes{'N', 10, "0e00aea0"},
    GlyphStrokes{'O', 10, "50*a0a7*ae5e*0e07*0050"},
    GlyphStrokes{'P', 9, "0e0050*9094*985808"},
    GlyphStrokes{'Q', 10, "50*a0a7*ae5e*0e07*0050 6aae"},
    GlyphStrokes{'R', 9, "0e0050*9094*985808 589e"},
    GlyphStrokes{'S', 8, "83*8040*0003*0747*878b*8e4e*0e0b"},
    GlyphStrokes{'T', 10, "00a0 505e"},
    GlyphStrokes{'U', 10, "0009*0e5e*aea9a0"},
    GlyphStrokes{'V', 10, "005ea0"},
    GlyphStrokes{'W', 14, "003e72bee0"},
    GlyphStrokes{'X', 9, "009e 900e"},
    GlyphStrokes{'Y', 10, "0057a0 575e"},
    GlyphStrokes{'Z', 9, "00900e9e"},
    GlyphStrokes{'_', 8, "0g8g"},
    GlyphStrokes{'a', 8, "848e 44*0409*0e4e*8e89*8444"},
    GlyphStrokes{'b', 8, "000e 44*0409*0e4e*8e89*8444"},
    GlyphStrokes{'c', 7, "76*7444*0409*0e4e*7e7c"},
    GlyphStrokes{'d', 8, "808e 44*0409*0e4e*8e89*8444"},
    GlyphStrokes{'e', 8, "0989*8444*0409*0e4e*7e7c"},
    GlyphStrokes{'f', 5, "50*20232e 0454"},
    GlyphStrokes{'g', 8, "848e*8i4i*1i0g 44*0409*0e4e*8e89*8444"},
    GlyphStrokes{'h', 8, "000e 09*0444*84898e"},
    GlyphStrokes{'i', 0, "040e 00"},
    GlyphStrokes{'j', 3, "343f*3i0i 30"},
    GlyphStrokes{'k', 7, "000e 740b 387e"},
    GlyphStrokes{'l', 2, "000b*0e2e"},
    GlyphStrokes{'m', 12, "040e 08*0434*64686e 68*6494*c4c8ce"},
    GlyphStrokes{'n', 8, "040e 09*0444*84898e"},
    GlyphStrokes{'o', 8, "44*0409*0e4e*8e89*8444"},
    GlyphStrokes{'p', 8, "040i 44*0409*0e4e*8e89*8444"},
    GlyphStrokes{'q', 8, "848i 44*0409*0e4e*8e89*8444"},
    GlyphStrokes{'r', 5, "040e 09*0454"},
    GlyphStrokes{'s', 7, "66*6434*0406*0939*797b*7e3e*0e0c"},
    GlyphStrokes{'t', 5, "212b*2e5e 0454"},
    GlyphStrokes{'u', 8, "0409*0e4e*8e89 848e"},
    GlyphStrokes{'v', 8, "044e84"},
    GlyphStrokes{'w', 12, "043e659ec4"},
    GlyphStrokes{'x', 8, "048e 840e"},
    GlyphStrokes{'y', 8, "044e 842i"},
    GlyphStrokes{'z', 7, "04740e7e"},
};

}  // namespace penstock
