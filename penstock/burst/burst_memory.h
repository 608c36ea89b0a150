// SPDX-License-Identifier: Apache-2.0
//
// The memory that a slot of a burst stands for, as it crosses: what kind it is, what may be done
// with it, and its file. Nothing of one that came from elsewhere is to be believed before
// MappedMemory has checked it; docs/design/burst.md has the rules for files.
#pragma once

#include <cstdint>

#include "penstock/base/unique_fd.h"

namespace penstock {

/// The values cross the socket.
enum class MemoryKind : std::uint32_t {
  kSharedFile = 1,  ///< A sealed memfd.
  kDmaBuf = 2,      ///< To come: needs format, planes and fences besides. Refused so far.
  kCudaIpc = 3,     ///< To come: a 64-byte handle instead of a file. Refused so far.
};

enum class MemoryAccess : std::uint32_t {
  /// Inputs only. The owner has sealed the file against further writers, so that any number of
  /// bursts can map it.
  kRead = 1,
  /// Outputs, and inputs if the client wants. Mapped once, by one burst, which then seals it.
  kReadWrite = 2,
};

struct BurstMemory {
  MemoryKind kind = MemoryKind::kSharedFile;
  MemoryAccess access = MemoryAccess::kRead;
  std::uint64_t offset = 0;  ///< Bytes into the file; a multiple of the page size.
  std::uint64_t size = 0;    ///< Bytes; operands lie within them.
  UniqueFd file;
};

}  // namespace penstock
