// SPDX-License-Identifier: Apache-2.0
//
// What one process tells another so that it can attach to a queue: where in which file the parts of
// the ring lie ("grantors"), and what they hold. The files travel beside the encoded bytes as
// descriptors of a Unix socket's message (FdSocket).
//
//   0 "PQD1" | 4 quantum u32 | 8 flavour u32 | 12 grantors u16 | 14 files u16
//   16 + 24 i: flags u32 (0) | file u32 | offset u32 | 0 u32 | extent u64      all little-endian
//
// A grantor is laid out as in Android's message queue. Decoding checks the form; what the parts
// mean in a file is checked where they are mapped (QueueMemory::attach).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/unique_fd.h"
#include "penstock/burst/ring.h"

namespace penstock {

/// Index of a part in QueueDescriptor::grantors.
enum class QueuePart : std::uint32_t { kReadCounter = 0, kWriteCounter = 1, kRing = 2, kFlag = 3 };

struct Grantor {
  std::uint32_t flags = 0;
  std::uint32_t file = 0;    ///< Index into the files.
  std::uint32_t offset = 0;  ///< Bytes, a multiple of 8.
  std::uint32_t reserved = 0;
  std::uint64_t extent = 0;  ///< Bytes.
};
static_assert(sizeof(Grantor) == 24 && offsetof(Grantor, file) == 4 &&
              offsetof(Grantor, offset) == 8 && offsetof(Grantor, extent) == 16);

inline constexpr std::size_t kMinGrantors = 3;  ///< An event word is the fourth.
inline constexpr std::size_t kMaxGrantors = 4;
inline constexpr std::uint64_t kMaxRingBytes = std::uint64_t{256} << 20;
inline constexpr std::size_t kMaxEncodedDescriptor = 16 + kMaxGrantors * sizeof(Grantor);

struct QueueDescriptor {
  std::uint32_t quantum = 0;
  std::uint32_t flavor = 0;  ///< A QueueFlavor, unless the sender lies.
  std::vector<Grantor> grantors;
  std::vector<UniqueFd> files;  ///< One: two might be the same one.
};

std::vector<std::byte> encode(const QueueDescriptor& descriptor);

/// kCorrupt, naming what is wrong. `files` are those of the same message; they are closed on an
/// error.
Result<QueueDescriptor> decode_descriptor(std::span<const std::byte> bytes,
                                          std::vector<UniqueFd> files);

/// The rules that need no file: 3 or 4 grantors (exactly 3 unsynchronised), type and flavour as
/// expected, parts aligned, of the right sizes, all in the one file and not overlapping. kCorrupt,
/// naming the grantor.
Result<void> check_parts(const QueueDescriptor& descriptor, std::size_t quantum,
                         QueueFlavor flavor);

}  // namespace penstock
