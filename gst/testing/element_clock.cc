// SPDX-License-Identifier: Apache-2.0
#include "gst/testing/element_clock.h"

namespace penstock::gst {
namespace {

constexpr const char* kKey = "penstock-test-clock";

}  // namespace

Clock& element_clock(GstElement* element) {
  auto* clock = static_cast<Clock*>(g_object_get_data(G_OBJECT(element), kKey));
  return clock != nullptr ? *clock : Clock::system();
}

void set_element_clock(GstElement* element, Clock& clock) {
  g_object_set_data(G_OBJECT(element), kKey, &clock);
}

}  // namespace penstock::gst
