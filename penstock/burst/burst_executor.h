// SPDX-License-Identifier: Apache-2.0
//
// What runs the requests of one burst, with the memories it keeps between them. BurstServer calls
// it from one thread at a time.
#pragma once

#include <cstdint>
#include <span>

#include "penstock/base/deadline.h"
#include "penstock/burst/burst_memory.h"
#include "penstock/burst/burst_types.h"

namespace penstock {

class BurstExecutor {
 public:
  virtual ~BurstExecutor() = default;

  virtual bool is_cached(std::int32_t slot) const = 0;
  /// A memory that came for `slot`. kInvalidArgument for one that breaks the rules of its kind,
  /// kResourceExhaustedTransient above a quota; then the slot is not cached.
  virtual ErrorStatus add(std::int32_t slot, BurstMemory memory) = 0;
  virtual void remove(std::int32_t slot) = 0;

  /// All slots of `request` are cached. What it asks for has the right grammar, and nothing else
  /// is sure: counts, ranks, dimensions, locations and overlaps are the executor's to check
  /// (kInvalidArgument). Data in `request`'s memories may change at any time. Returns by `deadline`
  /// as far as it can: kMissedDeadlineTransient.
  virtual BurstResult execute(const BurstRequest& request, Deadline deadline) = 0;
};

}  // namespace penstock
