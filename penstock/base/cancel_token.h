// SPDX-License-Identifier: Apache-2.0
//
// CancelToken tells work in flight that nobody wants its result any more. Copies share one flag;
// cancelling is permanent. Thread-safe.
#pragma once

#include <atomic>
#include <memory>

namespace penstock {

class CancelToken {
 public:
  CancelToken() : cancelled_(std::make_shared<std::atomic<bool>>(false)) {}
  void cancel() { cancelled_->store(true, std::memory_order_release); }
  bool is_cancelled() const { return cancelled_->load(std::memory_order_acquire); }

 private:
  std::shared_ptr<std::atomic<bool>> cancelled_;
};

}  // namespace penstock
