// SPDX-License-Identifier: Apache-2.0
//
// ShadowBlocks makes blocks that the host cannot read by their address: a memfd mapped twice, once
// PROT_NONE at the address handed out, once read-write for jobs. Fresh and freed blocks hold
// kSimPoison.
#pragma once

#include "penstock/memory/block_pool.h"

namespace penstock {

class ShadowBlocks final : public BlockSource {
 public:
  Result<Block> make(std::size_t size) override;
  void destroy(const Block& block) override;
  std::size_t granule() const override;
  void open(const Block&, std::size_t) override {}
  void poison(const Block& block) override;
};

}  // namespace penstock
