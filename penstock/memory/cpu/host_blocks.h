// SPDX-License-Identifier: Apache-2.0
//
// HostBlocks makes 64-byte aligned heap blocks. In debug builds freed blocks are filled with 0xdb;
// in AddressSanitizer builds they, and the slack behind a storage's last byte, are poisoned too, so
// that pooling hides no use after free and no overrun.
#pragma once

#include "penstock/memory/block_pool.h"

namespace penstock {

class HostBlocks : public BlockSource {
 public:
  Result<Block> make(std::size_t size) override;
  void destroy(const Block& block) override;
  std::size_t granule() const override { return kAlignment; }
  void open(const Block& block, std::size_t size) override;
  void poison(const Block& block) override;

 private:
  static constexpr std::size_t kAlignment = 64;  // A cache line, and the widest vector registers.
};

}  // namespace penstock
