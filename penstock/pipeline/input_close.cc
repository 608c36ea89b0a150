// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/input_close.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace penstock {
namespace {

std::atomic<int> g_left{0};

/// Shared with the thread, which may outlive everything else.
struct Closing {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  bool left = false;  ///< Nobody waits any more.
};

/// Takes the element.
void close_input(Closing& closing, GstElement* input) {
  gst_element_set_state(input, GST_STATE_NULL);
  gst_object_unref(input);
  const std::lock_guard lock(closing.mutex);
  closing.done = true;
  if (closing.left) --g_left;
  closing.changed.notify_all();
}

}  // namespace

int left_inputs() { return g_left; }

bool close_with_input(GstElement* pipeline, GstElement* input, Clock& clock, Nanoseconds limit) {
  // The rest first, as a pipeline does: what the input pushes is refused from then on.
  gst_element_set_locked_state(input, TRUE);
  gst_element_set_state(pipeline, GST_STATE_NULL);
  auto closing = std::make_shared<Closing>();
  auto* own = GST_ELEMENT(gst_object_ref(input));
  std::thread thread;
  try {
    thread = std::thread([closing, own] { close_input(*closing, own); });
  } catch (const std::system_error&) {
    close_input(*closing, own);
    return true;
  }
  std::unique_lock lock(closing->mutex);
  const bool done = clock.wait_until(lock, closing->changed, clock.now() + limit,
                                     [&closing] { return closing->done; });
  if (done) {
    lock.unlock();
    thread.join();
    return true;
  }
  closing->left = true;
  ++g_left;
  lock.unlock();
  thread.detach();
  gst_bin_remove(GST_BIN(pipeline), input);
  return false;
}

}  // namespace penstock
