// SPDX-License-Identifier: Apache-2.0
#include "penstock/memory/cpu/shared_blocks.h"

#include <unistd.h>

#include <utility>

namespace penstock {

Result<Block> SharedBlocks::make(std::size_t size) {
  auto file = SharedFile::create(size, MapAccess::kRead);
  if (!file) return std::unexpected(std::move(file).error());
  std::byte* const bytes = (*file)->bytes().data();
  return Block{.address = bytes, .bytes = bytes, .size = size, .file = std::move(*file)};
}

void SharedBlocks::destroy(const Block& block) {
  // The addresses may be somebody else's next.
  HostBlocks::open(block, block.size);
}

std::size_t SharedBlocks::granule() const {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace penstock
