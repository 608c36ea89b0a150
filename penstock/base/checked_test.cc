// SPDX-License-Identifier: Apache-2.0
#include "penstock/base/checked.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace penstock {
namespace {

constexpr auto kMax64 = std::numeric_limits<std::uint64_t>::max();

TEST(Checked, GivenFactorsThatFit_WhenMultiplied_ThenTheProductIsExact) {
  EXPECT_EQ(checked_product<std::uint64_t>(0xffffffffu, std::uint64_t{0x100000001}), kMax64);
  EXPECT_EQ(checked_product(3, 4, 5), 60);
  EXPECT_EQ(checked_product(7), 7);
}

TEST(Checked, GivenFactorsThatOverflow_WhenMultiplied_ThenNothing) {
  EXPECT_EQ(checked_product(std::uint64_t{1} << 32, std::uint64_t{1} << 32), std::nullopt);
  EXPECT_EQ(checked_product(std::int32_t{46341}, std::int32_t{46341}), std::nullopt);
  // An overflow on the way counts though a later factor of 0 would hide it.
  EXPECT_EQ(checked_product(kMax64, std::uint64_t{2}, std::uint64_t{0}), std::nullopt);
}

TEST(Checked, GivenTerms_WhenAdded_ThenOverflowGivesNothing) {
  EXPECT_EQ(checked_sum(kMax64 - 1, std::uint64_t{1}), kMax64);
  EXPECT_EQ(checked_sum(kMax64, std::uint64_t{1}), std::nullopt);
  EXPECT_EQ(checked_sum(1, 2, 3), 6);
}

}  // namespace
}  // namespace penstock
