// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/nv12_mp4.h"

#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>

#include "tests/e2e/clips.h"

namespace penstock::e2e {
namespace {

constexpr std::uint32_t kTimescale = 1000;
constexpr std::uint32_t kFrameTime = 40;
constexpr std::uint32_t kOne = 0x10000;  // 16.16 fixed point

std::string u8s(std::initializer_list<std::uint8_t> values) {
  return std::string(values.begin(), values.end());
}
std::string u16s(std::initializer_list<std::uint16_t> values) {
  std::string bytes;
  for (const std::uint16_t v : values) bytes += {char(v >> 8), char(v)};
  return bytes;
}
std::string u32s(std::initializer_list<std::uint32_t> values) {
  std::string bytes;
  for (const std::uint32_t v : values)
    bytes += {char(v >> 24), char(v >> 16), char(v >> 8), char(v)};
  return bytes;
}
std::string zeros(std::size_t count) { return std::string(count, '\0'); }

std::string box(std::string_view type, const std::string& payload) {
  return u32s({std::uint32_t(8 + payload.size())}) + std::string(type) + payload;
}
/// A box with a version of 0 and flags.
std::string full_box(std::string_view type, const std::string& payload, std::uint32_t flags = 0) {
  return box(type, u32s({flags}) + payload);
}

std::string matrix() { return u32s({kOne, 0, 0, 0, kOne, 0, 0, 0, 0x40000000}); }

std::string nv12_picture(int n) {
  const std::string planar = square_picture(n, kSide);
  const std::size_t luma = std::size_t(kSide) * kSide;
  std::string picture = planar.substr(0, luma);
  for (std::size_t i = 0; i < luma / 4; ++i) {
    picture += {planar[luma + i], planar[luma + luma / 4 + i]};
  }
  return picture;
}

std::string sample_entry() {
  // Y, Cb and Cr of 8 bits; 4:2:0 (2) with the chroma components in turns (mixed, 2).
  const std::string components = box("cmpd", u32s({3}) + u16s({1, 2, 3}));
  std::string layout = u32s({0, 3});
  for (std::uint16_t i = 0; i < 3; ++i) layout += u16s({i}) + u8s({7, 0, 0});
  layout += u8s({2, 2, 0, 0}) + u32s({0, 0, 0, 0, 0});
  // BT.709, limited range.
  const std::string colour = box("colr", "nclx" + u16s({1, 1, 1}) + u8s({0}));
  return box("uncv", zeros(6) + u16s({1}) + zeros(16) + u16s({kSide, kSide}) +
                         u32s({72 * kOne, 72 * kOne, 0}) + u16s({1}) + zeros(32) +
                         u16s({24, 0xffff}) + components + full_box("uncC", layout) + colour);
}

}  // namespace

void make_nv12_mp4(const std::filesystem::path& path, int frames) {
  const auto count = std::uint32_t(frames);
  const std::uint32_t duration = count * kFrameTime;
  const std::uint32_t frame_bytes = kSide * kSide * 3 / 2;
  std::string pictures;
  for (int n = 0; n < frames; ++n) pictures += nv12_picture(n);

  const std::string head = box("ftyp", "isom" + u32s({0}) + "isomiso6");
  const std::string samples =
      box("stbl", full_box("stsd", u32s({1}) + sample_entry()) +
                      full_box("stts", u32s({1, count, kFrameTime})) +
                      full_box("stsc", u32s({1, 1, count, 1})) +
                      full_box("stsz", u32s({frame_bytes, count})) +
                      full_box("stco", u32s({1, std::uint32_t(head.size() + 8)})));
  const std::string data =
      box("dinf", full_box("dref", u32s({1}) + full_box("url ", std::string(), 1)));
  const std::string media =
      box("mdia", full_box("mdhd", u32s({0, 0, kTimescale, duration}) + u16s({0x55c4, 0})) +
                      full_box("hdlr", u32s({0}) + "vide" + zeros(13)) +
                      box("minf", full_box("vmhd", zeros(8), 1) + data + samples));
  const std::string track = box("trak", full_box("tkhd",
                                                 u32s({0, 0, 1, 0, duration}) + zeros(16) +
                                                     matrix() + u32s({kSide * kOne, kSide * kOne}),
                                                 3) +
                                            media);
  const std::string movie =
      box("moov", full_box("mvhd", u32s({0, 0, kTimescale, duration, kOne}) + u16s({0x100}) +
                                       zeros(10) + matrix() + zeros(24) + u32s({2})) +
                      track);
  std::ofstream(path, std::ios::binary) << head << box("mdat", pictures) << movie;
}

}  // namespace penstock::e2e
