// SPDX-License-Identifier: Apache-2.0
#include "penstock/memory/cpu/host_blocks.h"

#include <cstdlib>
#include <cstring>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PENSTOCK_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define PENSTOCK_ASAN 1
#endif
#ifdef PENSTOCK_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

namespace penstock {

Result<Block> HostBlocks::make(std::size_t size) {
  auto* bytes = static_cast<std::byte*>(std::aligned_alloc(kAlignment, size));
  if (bytes == nullptr) return fail(ErrorKind::kExhausted, "the system is out of memory");
  return Block{.address = bytes, .bytes = bytes, .size = size};
}

void HostBlocks::destroy(const Block& block) {
  ASAN_UNPOISON_MEMORY_REGION(block.bytes, block.size);
  std::free(block.bytes);
}

void HostBlocks::open(const Block& block, std::size_t size) {
  ASAN_POISON_MEMORY_REGION(block.bytes, block.size);
  ASAN_UNPOISON_MEMORY_REGION(block.bytes, size);
}

void HostBlocks::poison(const Block& block) {
#ifndef NDEBUG
  ASAN_UNPOISON_MEMORY_REGION(block.bytes, block.size);
  std::memset(block.bytes, 0xdb, block.size);
#endif
  ASAN_POISON_MEMORY_REGION(block.bytes, block.size);
}

}  // namespace penstock
