// SPDX-License-Identifier: Apache-2.0
//
// Runs the requests of one burst in a model::Session; see SessionModel.
#pragma once

#include <map>
#include <memory>

#include "penstock/base/clock.h"
#include "penstock/burst/burst_executor.h"
#include "penstock/burst/mapped_memory.h"
#include "penstock/memory/device.h"
#include "penstock/model/session.h"

namespace penstock {

class SessionExecutor final : public BurstExecutor {
 public:
  SessionExecutor(DevicePtr device, std::shared_ptr<Session> session,
                  std::shared_ptr<BurstQuota> quota, const Clock* clock)
      : device_(std::move(device)),
        session_(std::move(session)),
        quota_(std::move(quota)),
        clock_(clock) {}

  bool is_cached(std::int32_t slot) const override { return memories_.contains(slot); }
  ErrorStatus add(std::int32_t slot, BurstMemory memory) override;
  void remove(std::int32_t slot) override { memories_.erase(slot); }
  BurstResult execute(const BurstRequest& request, Deadline deadline) override;

 private:
  const DevicePtr device_;
  const std::shared_ptr<Session> session_;
  const std::shared_ptr<BurstQuota> quota_;
  const Clock* const clock_;
  std::map<std::int32_t, std::shared_ptr<MappedMemory>> memories_;
};

}  // namespace penstock
