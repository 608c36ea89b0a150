// SPDX-License-Identifier: Apache-2.0
//
// A ring in ordinary memory of exactly the size it needs, so that AddressSanitizer sees every
// access outside it. Both ends can be opened on it, and a test can play the peer by writing its
// words.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "penstock/burst/ring.h"

namespace penstock::testing {

class HeapRing {
 public:
  HeapRing(std::size_t quantum, std::size_t elements)
      : data_(new std::byte[quantum * elements]{}),
        view_{.read_counter = &read_,
              .write_counter = &write_,
              .data = data_.get(),
              .bytes = quantum * elements,
              .quantum = quantum} {}
  HeapRing(const HeapRing&) = delete;
  HeapRing& operator=(const HeapRing&) = delete;

  const RingView& view() const { return view_; }
  std::byte* data() { return data_.get(); }

  std::uint64_t read_counter() { return std::atomic_ref(read_).load(); }
  std::uint64_t write_counter() { return std::atomic_ref(write_).load(); }
  void set_read_counter(std::uint64_t value) { std::atomic_ref(read_).store(value); }
  void set_write_counter(std::uint64_t value) { std::atomic_ref(write_).store(value); }

 private:
  std::uint64_t read_ = 0;
  std::uint64_t write_ = 0;
  std::unique_ptr<std::byte[]> data_;
  RingView view_;
};

}  // namespace penstock::testing
