// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/queue_descriptor.h"

#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

static_assert(std::endian::native == std::endian::little, "the encoding is the memory's layout");

struct Header {
  std::array<char, 4> magic;
  std::uint32_t quantum;
  std::uint32_t flavor;
  std::uint16_t grantors;
  std::uint16_t files;
};
static_assert(sizeof(Header) == 16 && std::is_trivially_copyable_v<Header>);

constexpr std::array<char, 4> kMagic = {'P', 'Q', 'D', '1'};
constexpr std::array<std::string_view, kMaxGrantors> kPartNames = {"read counter", "write counter",
                                                                   "ring", "event word"};

std::unexpected<Error> malformed(std::string why) {
  return fail(ErrorKind::kCorrupt, "queue descriptor: " + std::move(why));
}

std::unexpected<Error> bad_part(std::size_t part, std::string_view why) {
  return malformed(str_format("{}: {}", kPartNames.at(part), why));
}

/// Offsets have 32 bits, extents at most 2^28 once checked: their sum fits.
std::uint64_t end_of(const Grantor& grantor) { return grantor.offset + grantor.extent; }

bool overlap(const Grantor& a, const Grantor& b) {
  return a.offset < end_of(b) && b.offset < end_of(a);
}

Result<void> check_ring(const Grantor& ring, std::size_t quantum) {
  constexpr auto kPart = static_cast<std::size_t>(QueuePart::kRing);
  if (ring.extent == 0 || ring.extent > kMaxRingBytes) {
    return bad_part(kPart,
                    str_format("{} bytes; 1 to {} are possible", ring.extent, kMaxRingBytes));
  }
  if (ring.extent % quantum != 0) {
    return bad_part(kPart, str_format("{} bytes hold no whole number of elements of {} bytes",
                                      ring.extent, quantum));
  }
  return {};
}

Result<void> check_part(const QueueDescriptor& descriptor, std::size_t part, std::size_t quantum) {
  const Grantor& grantor = descriptor.grantors.at(part);
  if (grantor.file != 0) return bad_part(part, str_format("file {} of one", grantor.file));
  if (grantor.offset % 8 != 0) {
    return bad_part(part, str_format("offset {} is no multiple of 8", grantor.offset));
  }
  if (part == static_cast<std::size_t>(QueuePart::kRing)) return check_ring(grantor, quantum);
  const std::uint64_t size = part == static_cast<std::size_t>(QueuePart::kFlag) ? 4 : 8;
  if (grantor.extent != size) {
    return bad_part(part, str_format("{} bytes instead of {}", grantor.extent, size));
  }
  return {};
}

}  // namespace

std::vector<std::byte> encode(const QueueDescriptor& descriptor) {
  const Header header{.magic = kMagic,
                      .quantum = descriptor.quantum,
                      .flavor = descriptor.flavor,
                      .grantors = static_cast<std::uint16_t>(descriptor.grantors.size()),
                      .files = static_cast<std::uint16_t>(descriptor.files.size())};
  const std::size_t parts = descriptor.grantors.size() * sizeof(Grantor);
  std::vector<std::byte> bytes(sizeof header + parts);
  std::memcpy(bytes.data(), &header, sizeof header);
  if (parts > 0) std::memcpy(bytes.data() + sizeof header, descriptor.grantors.data(), parts);
  return bytes;
}

Result<QueueDescriptor> decode_descriptor(std::span<const std::byte> bytes,
                                          std::vector<UniqueFd> files) {
  Header header{};
  if (bytes.size() < sizeof header) return malformed(str_format("{} bytes", bytes.size()));
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMagic) return malformed("does not begin with PQD1");
  if (header.grantors < kMinGrantors || header.grantors > kMaxGrantors) {
    return malformed(str_format("{} grantors; 3 or 4 are possible", header.grantors));
  }
  if (bytes.size() != sizeof header + header.grantors * sizeof(Grantor)) {
    return malformed(str_format("{} bytes for {} grantors", bytes.size(), header.grantors));
  }
  if (header.files != 1 || files.size() != 1) {
    return malformed(str_format("speaks of {} files, and {} came", header.files, files.size()));
  }
  QueueDescriptor descriptor{.quantum = header.quantum,
                             .flavor = header.flavor,
                             .grantors = std::vector<Grantor>(header.grantors),
                             .files = std::move(files)};
  std::memcpy(descriptor.grantors.data(), bytes.data() + sizeof header,
              bytes.size() - sizeof header);
  for (std::size_t i = 0; i < descriptor.grantors.size(); ++i) {
    const Grantor& grantor = descriptor.grantors[i];
    if (grantor.flags != 0 || grantor.reserved != 0) return bad_part(i, "flags are set");
  }
  return descriptor;
}

Result<void> check_parts(const QueueDescriptor& descriptor, std::size_t quantum,
                         QueueFlavor flavor) {
  const auto& grantors = descriptor.grantors;
  if (quantum == 0 || descriptor.quantum != quantum) {
    return malformed(str_format("elements of {} bytes instead of {}", descriptor.quantum, quantum));
  }
  if (descriptor.flavor != static_cast<std::uint32_t>(flavor)) {
    return malformed(str_format("flavour {} instead of {}", descriptor.flavor,
                                static_cast<std::uint32_t>(flavor)));
  }
  const std::size_t most = flavor == QueueFlavor::kSynchronised ? kMaxGrantors : kMinGrantors;
  if (grantors.size() < kMinGrantors || grantors.size() > most) {
    return malformed(
        str_format("{} grantors; {} to {} are possible", grantors.size(), kMinGrantors, most));
  }
  if (descriptor.files.size() != 1) {
    return malformed(str_format("{} files instead of one", descriptor.files.size()));
  }
  for (std::size_t i = 0; i < grantors.size(); ++i) {
    PENSTOCK_TRY(check_part(descriptor, i, quantum));
  }
  for (std::size_t i = 0; i < grantors.size(); ++i) {
    for (std::size_t j = i + 1; j < grantors.size(); ++j) {
      if (overlap(grantors[i], grantors[j])) {
        return bad_part(i, str_format("overlaps the {}", kPartNames.at(j)));
      }
    }
  }
  return {};
}

}  // namespace penstock
