// SPDX-License-Identifier: Apache-2.0
#include "penstock/track/assignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// The least sum over all ways to pair, by trying each; going without costs kNoPair.
double least_by_trying(const std::vector<float>& costs, std::size_t rows, std::size_t columns) {
  const std::size_t side = std::max(rows, columns);
  std::vector<std::size_t> order(side);
  std::iota(order.begin(), order.end(), 0);
  double least = 1e18;
  do {
    double sum = 0;
    for (std::size_t row = 0; row < side; ++row) {
      if (row >= rows || order[row] >= columns) continue;
      sum += double(std::min(costs[row * columns + order[row]], kNoPair));
    }
    least = std::min(least, sum);
  } while (std::ranges::next_permutation(order).found);
  return least;
}

TEST(Assign, GivenRandomCosts_WhenAssigned_ThenNoOtherWayIsCheaper) {
  std::mt19937 random(5);
  for (std::size_t rows = 1; rows <= 6; ++rows) {
    for (std::size_t columns = 1; columns <= 6; ++columns) {
      for (int again = 0; again < 10; ++again) {
        std::vector<float> costs(rows * columns);
        for (float& cost : costs) {
          cost = random() % 4 == 0 ? kNoPair : float(random() % 1000) / 1000;
        }
        const auto columns_of = assign(costs, rows, columns);
        double sum = 0;
        std::vector<int> seen;
        std::size_t pairs = 0;
        for (std::size_t row = 0; row < rows; ++row) {
          if (columns_of[row] < 0) continue;
          ++pairs;
          seen.push_back(columns_of[row]);
          const float cost = costs[row * columns + std::size_t(columns_of[row])];
          EXPECT_LT(cost, kNoPair);
          sum += double(cost);
        }
        std::ranges::sort(seen);
        EXPECT_EQ(std::ranges::unique(seen).begin(), seen.end());
        sum += double(std::min(rows, columns) - pairs) * double(kNoPair);
        EXPECT_NEAR(sum, least_by_trying(costs, rows, columns), 1e-4);
      }
    }
  }
}

TEST(Assign, GivenAPairThatWouldSpoilABetterOne_WhenAssigned_ThenOneGoesWithout) {
  // The first row could make room for the second, at more than it costs the second to go without.
  const std::vector<float> costs{0.1f, 0.8f, 0.75f, kNoPair};
  EXPECT_THAT(assign(costs, 2, 2), ElementsAre(0, -1));
}

TEST(Assign, GivenNothing_WhenAssigned_ThenNobodyHasAnything) {
  EXPECT_THAT(assign({}, 0, 3), IsEmpty());
  EXPECT_THAT(assign({}, 2, 0), ElementsAre(-1, -1));
  const std::vector<float> none{kNoPair, 2 * kNoPair};
  EXPECT_THAT(assign(none, 1, 2), ElementsAre(-1));
  EXPECT_THAT(assign(none, 2, 1), ElementsAre(-1, -1));
}

}  // namespace
}  // namespace penstock
