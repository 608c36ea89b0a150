// SPDX-License-Identifier: Apache-2.0
//
// FrameBudget bounds the frames an element holds (contract L05): a lease for each frame, or for all
// that come at one time, given back when the last of element, executor and running job lets go of
// it. Waiting for a lease is the element's back-pressure.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>

namespace penstock::gst {

class FrameBudget : public std::enable_shared_from_this<FrameBudget> {
 public:
  using Lease = std::shared_ptr<const void>;

  explicit FrameBudget(std::size_t limit) : limit_(limit) {}

  /// Counts `frames` more, at most limit(), then waits until no more than the limit are held. Null
  /// when interrupted. One caller at a time, so that at most limit + frames are ever counted.
  Lease acquire(std::size_t frames = 1);
  /// Makes acquire() fail, now and until resume().
  void interrupt();
  void resume();

  std::size_t limit() const { return limit_; }
  std::size_t held() const;
  std::size_t most_held() const;

 private:
  void give_back(std::size_t frames);

  const std::size_t limit_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t held_ = 0;
  std::size_t most_held_ = 0;
  bool interrupted_ = false;
};

}  // namespace penstock::gst
