// SPDX-License-Identifier: Apache-2.0
//
// Starts GStreamer for a test binary and registers Penstock's elements, without a plugin path.
#include <gst/gst.h>
#include <gtest/gtest.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "gst/register.h"
#include "gst/sim/sim_elements.h"

namespace penstock::gst {
namespace {

/// The first process without a registry scans every plugin of the machine, in itself under a
/// sanitizer, and some of their libraries leak.
void init_gstreamer() {
#ifdef __SANITIZE_ADDRESS__
  const __lsan::ScopedDisabler others;
#endif
  gst_init(nullptr, nullptr);
}

class GstEnvironment : public ::testing::Environment {
 public:
  void SetUp() override {
    // A scan of the plugin path would load the plugin, whose types are those of this binary.
    g_unsetenv("GST_PLUGIN_PATH");
    init_gstreamer();
    ASSERT_TRUE(register_elements(nullptr));
    ASSERT_TRUE(register_sim_elements(nullptr));
  }
};

const auto* const environment = ::testing::AddGlobalTestEnvironment(new GstEnvironment);

}  // namespace
}  // namespace penstock::gst
