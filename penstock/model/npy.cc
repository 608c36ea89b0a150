// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/npy.h"

#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

constexpr std::string_view kMagic{"\x93NUMPY", 6};
constexpr std::uintmax_t kMaxBytes = std::uintmax_t{1} << 30;
constexpr std::size_t kMaxRank = 16;

std::unexpected<Error> corrupt(std::string why) {
  return fail(ErrorKind::kCorrupt, "not a .npy array: " + std::move(why));
}

/// What follows `'key':` in the header, a Python dictionary of literals.
std::optional<std::string_view> value_of(std::string_view header, std::string_view key) {
  const auto at = header.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  header.remove_prefix(at + key.size());
  const auto start = header.find_first_not_of(": ");
  if (start == std::string_view::npos) return std::nullopt;
  return header.substr(start);
}

/// "(1, 3, 416, 416)", "(5,)" or "()".
std::optional<Shape> parse_shape(std::string_view text) {
  if (!text.starts_with('(')) return std::nullopt;
  text.remove_prefix(1);
  Shape shape;
  while (true) {
    const auto next = text.find_first_not_of(", ");
    if (next == std::string_view::npos || shape.size() > kMaxRank) return std::nullopt;
    text.remove_prefix(next);
    if (text.starts_with(')')) return shape;
    std::int64_t side = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), side);
    if (error != std::errc() || side < 0) return std::nullopt;
    shape.push_back(side);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
}

}  // namespace

Result<NpyArray> parse_npy(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic) || text.size() < 10) return corrupt("no magic number");
  const auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(bytes[i]); };
  const std::size_t version = byte(6);
  if (version < 1 || version > 3) return corrupt(str_format("version {}", version));
  std::size_t start = 10;
  std::size_t length = byte(8) | byte(9) << 8;
  if (version > 1) {
    if (text.size() < 12) return corrupt("its header is cut");
    start = 12;
    length |= byte(10) << 16 | byte(11) << 24;
  }
  if (length > text.size() - start) return corrupt("its header is cut");
  const std::string_view header = text.substr(start, length);
  const auto type = value_of(header, "'descr'");
  const auto order = value_of(header, "'fortran_order'");
  const auto sides = value_of(header, "'shape'");
  const auto shape = sides ? parse_shape(*sides) : std::nullopt;
  if (!type || !order || !shape) return corrupt("its header is incomplete");
  if (!type->starts_with("'<f4'") || !order->starts_with("False")) {
    return fail(ErrorKind::kUnsupported, "only float32 arrays in C order are read");
  }
  const auto size = byte_size(DataType::kFloat32, *shape);
  if (!size) return std::unexpected(size.error());
  const auto data = bytes.subspan(start + length);
  if (data.size() != *size) {
    return corrupt(
        str_format("{} bytes of data, but shape {} has {}", data.size(), to_string(*shape), *size));
  }
  NpyArray array{*shape, std::vector<float>(*size / sizeof(float))};
  if (!data.empty()) std::memcpy(array.values.data(), data.data(), data.size());
  return array;
}

Result<NpyArray> read_npy(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) {
    return fail(
        error == std::errc::no_such_file_or_directory ? ErrorKind::kNotFound : ErrorKind::kIo,
        str_format("'{}': {}", path.string(), error.message()));
  }
  if (size > kMaxBytes) {
    return fail(ErrorKind::kExhausted, str_format("'{}' has {} bytes", path.string(), size));
  }
  std::vector<std::byte> bytes(size);
  std::ifstream file(path, std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size))) {
    return fail(ErrorKind::kIo, str_format("cannot read '{}'", path.string()));
  }
  auto array = parse_npy(bytes);
  if (!array) {
    return std::unexpected(std::move(array).error().context(str_format("'{}'", path.string())));
  }
  return array;
}

}  // namespace penstock
