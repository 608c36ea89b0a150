// SPDX-License-Identifier: Apache-2.0
//
// `sim` makes the memory contract bite on any machine; tests only. Its Storage is a memfd mapped
// twice: the address handed out is PROT_NONE (a host that cheats dies by SIGSEGV), jobs use a
// private read-write alias through Access. Fences pass late and out of step, freed memory is
// poisoned with 0xdb, the n-th device call can fail. Storage is pooled: creating, touching and
// freeing 660 kB this way costs 1.9 ms (measured).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "penstock/memory/device.h"

namespace penstock {

struct SimOptions {
  DeviceOptions device{};
  int queues = 2;          ///< Worker threads that run jobs; > 1 lets fences pass out of step.
  std::uint64_t seed = 1;  ///< Drives the order in which ready jobs run and complete.
  /// Each job starts, and each fence passes, late by a random time up to this.
  Nanoseconds max_delay{50'000};
  /// Fails the n-th call (1-based) of allocate, submit, copy, read_back or upload; 0: never.
  std::uint64_t fail_call = 0;
  bool hold_jobs = false;  ///< Jobs wait until hold_jobs(false), to test what must outlive them.
};

class SimDevice : public Device {
 public:
  static std::shared_ptr<SimDevice> create(const SimOptions& options = {});

  /// Device calls made so far.
  virtual std::uint64_t calls() const = 0;
  /// The call whose failure is injected, counted from the device's creation like calls().
  virtual void fail_call(std::uint64_t nth) = 0;
  /// hold_jobs: lets jobs run from now on (or holds them again).
  virtual void hold_jobs(bool hold) = 0;
  virtual std::uint64_t jobs_pending() const = 0;
  /// Blocks until no job is pending, and so for ever while jobs are held.
  virtual void wait_idle() = 0;
  /// Live storages (not in the pool), for leak checks.
  virtual std::uint64_t live_storages() const = 0;
};

/// The poison byte that fills freed sim memory.
inline constexpr unsigned char kSimPoison = 0xdb;

}  // namespace penstock
