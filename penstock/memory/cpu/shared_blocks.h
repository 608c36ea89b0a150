// SPDX-License-Identifier: Apache-2.0
//
// SharedBlocks makes blocks that other processes can map and read, each a SharedFile of its own.
#pragma once

#include "penstock/memory/cpu/host_blocks.h"

namespace penstock {

class SharedBlocks final : public HostBlocks {
 public:
  Result<Block> make(std::size_t size) override;
  /// The file goes with the last copy of the block.
  void destroy(const Block& block) override;
  std::size_t granule() const override;
};

}  // namespace penstock
