// SPDX-License-Identifier: Apache-2.0
//
// Starts GStreamer for a test binary and registers Penstock's elements, without a plugin path.
#include <gst/gst.h>
#include <gtest/gtest.h>

#include "gst/register.h"
#include "gst/sim/sim_elements.h"

namespace penstock::gst {
namespace {

class GstEnvironment : public ::testing::Environment {
 public:
  void SetUp() override {
    gst_init(nullptr, nullptr);
    ASSERT_TRUE(register_elements(nullptr));
    ASSERT_TRUE(register_sim_elements(nullptr));
  }
};

const auto* const environment = ::testing::AddGlobalTestEnvironment(new GstEnvironment);

}  // namespace
}  // namespace penstock::gst
