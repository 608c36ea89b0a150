// SPDX-License-Identifier: Apache-2.0
//
// Contract B05 (and B01-B04 along the way): the executor against a reference scheduler.
#include <gtest/gtest.h>

#include <cstdint>

#include "penstock/exec/test_schedule.h"

namespace penstock {
namespace {

TEST(B05, GivenRandomSteps_WhenComparedWithTheReferenceScheduler_ThenTheyNeverDiffer) {
  for (const int batch_size : {1, 2, 4}) {
    const std::uint64_t seed = 20 + static_cast<std::uint64_t>(batch_size);
    SCOPED_TRACE(::testing::Message() << "seed " << seed << ", batch size " << batch_size);
    testing::RandomSteps steps(seed, batch_size);
    for (int i = 0; i < 10'000; ++i) {
      steps.step();
      ASSERT_EQ(steps.difference(), "") << "at step " << i;
    }
    EXPECT_GT(steps.batches(), 500u);
    steps.finish();
    EXPECT_EQ(steps.difference(), "");
  }
}

}  // namespace
}  // namespace penstock
