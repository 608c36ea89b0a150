// SPDX-License-Identifier: Apache-2.0
//
// What tests of peninfer's life share: waiting for what must come, and counting what must go.
#pragma once

#include <gst/check/gstharness.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <iterator>
#include <thread>

#include "gst/testing/infer_fixture.h"

namespace penstock::gst {

/// Yields until `done`; false after 20 s, far beyond what any machine needs.
inline bool eventually(const std::function<bool()>& done) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!done()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::yield();
  }
  return true;
}

inline std::size_t entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

class Lifecycle : public InferFixture {
 protected:
  GstFlowReturn push(int frame) {
    return gst_harness_push(harness_.get(), make_frame(pts(frame)).release());
  }
  bool await_eos() {
    while (GstEvent* raw = gst_harness_pull_event(harness_.get())) {
      const EventPtr event(raw);
      if (GST_EVENT_TYPE(raw) == GST_EVENT_EOS) return true;
    }
    return false;
  }
  bool has_eos() {
    while (GstEvent* raw = gst_harness_try_pull_event(harness_.get())) {
      const EventPtr event(raw);
      if (GST_EVENT_TYPE(raw) == GST_EVENT_EOS) return true;
    }
    return false;
  }
};

}  // namespace penstock::gst
