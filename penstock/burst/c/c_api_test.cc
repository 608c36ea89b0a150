// SPDX-License-Identifier: Apache-2.0
//
// The C interface and the Python module, each a program of its own against a server here (contract
// X04, X05).
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "penstock/base/str_format.h"
#include "penstock/burst/testing/burst_fixture.h"

namespace penstock {
namespace {

using X04_Languages = testing::BurstTest;
INSTANTIATE_TEST_SUITE_P(Burst, X04_Languages, ::testing::Values(testing::Way::kSocket),
                         testing::name_of);

TEST_P(X04_Languages, GivenAProgramInC_WhenItExecutes_ThenItGetsTheModelsOutputs) {
  EXPECT_EQ(std::system(str_format("'{}' '{}'", PENSTOCK_USE_FROM_C, socket().string()).c_str()),
            0);
  EXPECT_GE(session_->runs, 4);
}

#ifdef PENSTOCK_PYTHON
TEST_P(X04_Languages, GivenPython_WhenItExecutes_ThenItGetsTheModelsOutputs) {
  EXPECT_EQ(std::system(str_format("PENSTOCK_BURST_LIBRARY='{}' PYTHONPATH='{}' python3 '{}' '{}'",
                                   PENSTOCK_BURST_LIBRARY, PENSTOCK_PYTHON,
                                   PENSTOCK_USE_FROM_PYTHON, socket().string())
                            .c_str()),
            0);
  EXPECT_GE(session_->runs, 3);
}
#endif

}  // namespace
}  // namespace penstock
