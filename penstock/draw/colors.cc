// SPDX-License-Identifier: Apache-2.0
#include "penstock/draw/colors.h"

#include <array>
#include <cstddef>

namespace penstock {
namespace {

constexpr DrawColor rgb(std::uint32_t value) {
  return {.blue = static_cast<std::uint8_t>(value),
          .green = static_cast<std::uint8_t>(value >> 8),
          .red = static_cast<std::uint8_t>(value >> 16)};
}

// Clear and apart from each other, on streets and faces too; neighbours differ in hue.
constexpr std::array kPalette{
    rgb(0x00c2ff), rgb(0xff9f1c), rgb(0x3ddc84), rgb(0xff4d6d), rgb(0xb388ff),
    rgb(0xffe14d), rgb(0x2f80ed), rgb(0xff6ec7), rgb(0x9be564), rgb(0xff7043),
    rgb(0x1de9b6), rgb(0xc2185b), rgb(0x8c9eff), rgb(0xd4a017), rgb(0x00897b),
    rgb(0xf48fb1), rgb(0x64b5f6), rgb(0xaeea00), rgb(0x8e24aa), rgb(0xe53935),
};

DrawColor pick(std::uint64_t number) { return kPalette[number % kPalette.size()]; }

}  // namespace

DrawColor color_of_label(std::string_view label) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : label) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return pick(hash ^ (hash >> 32));
}

DrawColor color_of_track(std::int64_t track_id) {
  return pick(static_cast<std::uint64_t>(track_id));
}

DrawColor color_of_class(std::uint8_t class_id) { return pick(class_id); }

DrawColor ink_on(DrawColor ground) {
  // Rec. 709 luma of the levels themselves: near enough to how light a colour looks.
  const int light = 213 * ground.red + 715 * ground.green + 72 * ground.blue;
  return light > 118 * 1000 ? rgb(0x101418) : rgb(0xffffff);
}

}  // namespace penstock
