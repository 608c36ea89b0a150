// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/container_size.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace penstock {
namespace {

std::string big_endian(std::uint64_t value, int count) {
  std::string bytes;
  for (int i = count; i-- > 0;) bytes += char(value >> 8 * i & 0xff);
  return bytes;
}

std::string little_endian(std::uint64_t value, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes += char(value >> 8 * i & 0xff);
  return bytes;
}

/// Without a `declared` length the one that is true.
std::string box(const std::string& type, std::size_t payload, std::int64_t declared = -1) {
  const auto length = declared < 0 ? 8 + payload : std::uint64_t(declared);
  return big_endian(length, 4) + type + std::string(payload, 'x');
}

std::string large_box(const std::string& type, std::size_t payload, std::uint64_t declared) {
  return big_endian(1, 4) + type + big_endian(declared, 8) + std::string(payload, 'x');
}

std::string riff(const std::string& kind, std::uint32_t declared, std::size_t payload) {
  return "RIFF" + little_endian(declared, 4) + kind + std::string(payload, 'x');
}

const std::string kEbmlHeader = big_endian(0x1A45DFA3, 4) + "\x84" + "webm";

/// A segment whose size is written in `width` bytes.
std::string segment(std::uint64_t declared, int width, std::size_t payload) {
  const std::uint64_t marker = std::uint64_t{1} << 7 * width;
  return big_endian(0x18538067, 4) + big_endian(marker | declared, width) +
         std::string(payload, 'x');
}

std::uint64_t missing_in(const std::string& bytes) {
  return missing_bytes(
      [&bytes](std::uint64_t offset, std::span<unsigned char> to) {
        EXPECT_LE(offset + to.size(), bytes.size());
        std::memcpy(to.data(), bytes.data() + offset, to.size());
        return to.size();
      },
      bytes.size());
}

TEST(ContainerSize, GivenAvi_WhenCut_ThenTheMissingBytesAreKnown) {
  // A RIFF header counts what follows its first 8 bytes: the kind and the payload.
  EXPECT_EQ(missing_in(riff("AVI ", 4 + 100, 100)), 0u);
  EXPECT_EQ(missing_in(riff("AVI ", 4 + 100, 60)), 40u);
  EXPECT_EQ(missing_in(riff("AVI ", 4 + 100, 160)), 0u);
  EXPECT_EQ(missing_in(riff("WAVE", 4 + 100, 60)), 0u);
  EXPECT_EQ(missing_in("RIFF"), 0u);
}

TEST(ContainerSize, GivenAnAviOfTwoLists_WhenTheSecondIsCut_ThenTheMissingBytesAreKnown) {
  EXPECT_EQ(missing_in(riff("AVI ", 104, 100) + riff("AVIX", 54, 50)), 0u);
  EXPECT_EQ(missing_in(riff("AVI ", 104, 100) + riff("AVIX", 54, 20)), 30u);
  EXPECT_EQ(missing_in(riff("AVI ", 104, 100) + "RIFF"), 0u) << "too short to say anything";
}

TEST(ContainerSize, GivenMp4_WhenCut_ThenTheMissingBytesAreKnown) {
  const std::string start = box("ftyp", 16) + box("moov", 200);
  EXPECT_EQ(missing_in(start + box("mdat", 500)), 0u);
  EXPECT_EQ(missing_in(start + box("mdat", 300, 8 + 500)), 200u);
  EXPECT_EQ(missing_in(box("ftyp", 16) + box("moov", 50, 8 + 200)), 150u);
  EXPECT_EQ(missing_in(start + box("moof", 40) + box("mdat", 10) + box("moof", 4, 8 + 40)), 36u);
}

TEST(ContainerSize, GivenA64BitBox_WhenCut_ThenTheMissingBytesAreKnown) {
  const std::string start = box("ftyp", 16);
  EXPECT_EQ(missing_in(start + large_box("mdat", 100, 16 + 100)), 0u);
  EXPECT_EQ(missing_in(start + large_box("mdat", 100, (std::uint64_t{5} << 32) + 116)),
            std::uint64_t{5} << 32);
  EXPECT_EQ(missing_in(start + large_box("mdat", 0, 116).substr(0, 10)), 6u)
      << "at least the rest of the header";
}

TEST(ContainerSize, GivenMatroska_WhenCut_ThenTheMissingBytesAreKnown) {
  for (int width : {2, 4, 8}) {
    EXPECT_EQ(missing_in(kEbmlHeader + segment(300, width, 300)), 0u) << width;
    EXPECT_EQ(missing_in(kEbmlHeader + segment(300, width, 100)), 200u) << width;
  }
}

TEST(ContainerSize, GivenASizeThatWasNotKnownWhenItWasWritten_ThenNothingIsMissing) {
  EXPECT_EQ(missing_in(kEbmlHeader + segment(0x7f, 1, 100)), 0u);
  EXPECT_EQ(missing_in(kEbmlHeader + segment((std::uint64_t{1} << 56) - 1, 8, 100)), 0u);
  EXPECT_EQ(missing_in(box("ftyp", 16) + box("mdat", 100, 0)), 0u);
  EXPECT_EQ(missing_in(riff("AVI ", 0, 100)), 0u);
}

TEST(ContainerSize, GivenBytesAfterTheEnd_ThenNothingIsMissing) {
  const std::string whole = box("ftyp", 16) + box("mdat", 100);
  EXPECT_EQ(missing_in(whole + std::string(5, '\0')), 0u);
  EXPECT_EQ(missing_in(whole + "These words are no box."), 0u);
  EXPECT_EQ(missing_in(kEbmlHeader + segment(300, 2, 300) + "words"), 0u);
}

TEST(ContainerSize, GivenSizesThatFitNoFile_ThenNothingFollowsFromThem) {
  const std::string start = box("ftyp", 16);
  const auto most = ~std::uint64_t{0};
  EXPECT_EQ(missing_in(start + large_box("mdat", 100, most)), 0u);
  EXPECT_EQ(missing_in(start + large_box("mdat", 100, most - 20)), 0u);
  EXPECT_EQ(missing_in(start + large_box("mdat", 100, 15)), 0u);
  EXPECT_EQ(missing_in(start + box("mdat", 100, 7)), 0u);
  EXPECT_EQ(missing_in(start + large_box("mdat", 100, 0)), 0u);
}

TEST(ContainerSize, GivenMoreHeadersThanTheLimit_ThenTheReadingEnds) {
  int reads = 0;
  // Boxes of 8 bytes without end.
  const auto missing = missing_bytes(
      [&reads](std::uint64_t, std::span<unsigned char> to) {
        ++reads;
        std::memcpy(to.data(),
                    "\0\0\0\x08"
                    "free"
                    "\0\0\0\x08"
                    "free",
                    to.size());
        return to.size();
      },
      std::uint64_t{1} << 40);
  EXPECT_EQ(missing, 0u);
  EXPECT_LE(reads, kMaxContainerHeaders + 1);
}

TEST(ContainerSize, GivenAReaderThatFails_ThenNothingIsMissing) {
  const auto missing =
      missing_bytes([](std::uint64_t, std::span<unsigned char>) { return std::size_t{0}; }, 100);
  EXPECT_EQ(missing, 0u);
}

TEST(ContainerSize, GivenFiles_WhenAsked_ThenTheyAreReadOrNothingIsMissing) {
  const auto path = std::filesystem::path(testing::TempDir()) / "container_size_test.mkv";
  std::ofstream(path, std::ios::binary) << kEbmlHeader + segment(300, 2, 100);
  EXPECT_EQ(missing_bytes(path), 200u);
  EXPECT_EQ(missing_bytes("/no/such/file"), 0u);
  EXPECT_EQ(missing_bytes(std::filesystem::path(testing::TempDir())), 0u);
}

}  // namespace
}  // namespace penstock
