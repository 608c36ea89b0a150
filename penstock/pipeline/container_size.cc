// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/container_size.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <string_view>
#include <system_error>

#include "penstock/base/unique_fd.h"

namespace penstock {
namespace {

// No file is longer; a size beyond it is damage, and nothing follows from it.
constexpr std::uint64_t kMaxOffset = std::numeric_limits<std::int64_t>::max();

// Long enough for every header here: a box with a 64-bit size has 16, an element 4 + 8.
constexpr std::size_t kMaxHeader = 16;

/// The bytes of a header, as many of them as there are.
class Header {
 public:
  Header(const ReadAt& read, std::uint64_t offset, std::uint64_t size) {
    const auto room = std::size_t(std::min<std::uint64_t>(kMaxHeader, size - offset));
    length_ = std::min(read(offset, std::span(bytes_).first(room)), room);
  }
  std::size_t length() const { return length_; }
  unsigned char operator[](std::size_t at) const { return bytes_[at]; }
  std::string_view text(std::size_t at) const {
    return {reinterpret_cast<const char*>(bytes_.data()) + at, 4};
  }
  std::uint64_t big_endian(std::size_t at, std::size_t count) const {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < count; ++i) value = value << 8 | bytes_[at + i];
    return value;
  }
  std::uint64_t little_endian(std::size_t at, std::size_t count) const {
    std::uint64_t value = 0;
    for (std::size_t i = count; i-- > 0;) value = value << 8 | bytes_[at + i];
    return value;
  }

 private:
  std::array<unsigned char, kMaxHeader> bytes_{};
  std::size_t length_ = 0;
};

/// What a header says of its part of the file.
struct Part {
  std::uint64_t length = 0;  ///< With its header.
  bool known = false;        ///< Of a type that belongs here: its length is to be believed.
  bool valid = false;        ///< False: the walk ends, and nothing is known of the rest.
};

template <typename Parse>
std::uint64_t walk(const ReadAt& read, std::uint64_t size, Parse parse) {
  std::uint64_t offset = 0;
  for (int i = 0; i < kMaxContainerHeaders && offset < size; ++i) {
    const Part part = parse(Header(read, offset, size));
    if (!part.valid || part.length == 0 || part.length > kMaxOffset - offset) return 0;
    // Bytes after the end that only look like a header must not fail a file that is whole.
    if (part.length > size - offset) return part.known ? part.length - (size - offset) : 0;
    offset += part.length;
  }
  return 0;
}

// AVI is a RIFF list, and one of more than a gigabyte several of them (OpenDML).
Part parse_riff(const Header& header) {
  if (header.length() < 12 || header.text(0) != "RIFF") return {};
  if (header.text(8) != "AVI " && header.text(8) != "AVIX") return {};
  const std::uint64_t length = 8 + header.little_endian(4, 4);
  return {.length = length, .known = true, .valid = length >= 12};
}

bool is_box_type(std::string_view type) {
  static constexpr std::array<std::string_view, 20> kTypes{
      "ftyp", "styp", "moov", "moof", "mdat", "free", "skip", "wide", "pnot", "uuid",
      "sidx", "ssix", "mfra", "meta", "prft", "emsg", "pdin", "udta", "imda", "cmov"};
  return std::ranges::find(kTypes, type) != kTypes.end();
}

Part parse_box(const Header& header) {
  if (header.length() < 8) return {};
  const bool known = is_box_type(header.text(4));
  const std::uint64_t length = header.big_endian(0, 4);
  // 0: to the end of the file, wherever that is.
  if (length == 0) return {};
  if (length != 1) return {.length = length, .known = known, .valid = length >= 8};
  // A header that is cut itself: at least the rest of it is missing.
  if (header.length() < 16) return {.length = 16, .known = known, .valid = true};
  const std::uint64_t large = header.big_endian(8, 8);
  return {.length = large, .known = known, .valid = large >= 16};
}

constexpr std::uint64_t kEbml = 0x1A45DFA3;
constexpr std::uint64_t kSegment = 0x18538067;

Part parse_element(const Header& header) {
  if (header.length() < 2) return {};
  const auto id_length = std::size_t(std::countl_zero(header[0])) + 1;
  if (id_length > 4 || header.length() <= id_length) return {};
  const std::uint64_t id = header.big_endian(0, id_length);
  const auto size_length = std::size_t(std::countl_zero(header[id_length])) + 1;
  if (size_length > 8 || header.length() < id_length + size_length) return {};
  // The bits after the marker; all of them set means that the size was not known when it was
  // written.
  const std::uint64_t mask = (std::uint64_t{1} << 7 * size_length) - 1;
  const std::uint64_t length = header.big_endian(id_length, size_length) & mask;
  if (length == mask) return {};
  return {.length = id_length + size_length + length,
          .known = id == kEbml || id == kSegment,
          .valid = true};
}

}  // namespace

std::uint64_t missing_bytes(const ReadAt& read, std::uint64_t size) {
  if (size == 0 || size > kMaxOffset) return 0;
  const Header head(read, 0, size);
  if (head.length() < 8) return 0;
  if (head.text(0) == "RIFF") return walk(read, size, parse_riff);
  if (head.big_endian(0, 4) == kEbml) return walk(read, size, parse_element);
  if (is_box_type(head.text(4))) return walk(read, size, parse_box);
  return 0;
}

std::uint64_t missing_bytes(const std::filesystem::path& file) {
  std::error_code ec;
  if (!std::filesystem::is_regular_file(file, ec)) return 0;
  const std::uint64_t size = std::filesystem::file_size(file, ec);
  if (ec) return 0;
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.is_valid()) return 0;
  return missing_bytes(
      [&fd](std::uint64_t offset, std::span<unsigned char> to) {
        const ssize_t got = ::pread(fd.get(), to.data(), to.size(), off_t(offset));
        return std::size_t(std::max<ssize_t>(got, 0));
      },
      size);
}

}  // namespace penstock
