// SPDX-License-Identifier: Apache-2.0
#include "penstock/track/assignment.h"

#include <algorithm>
#include <limits>

namespace penstock {
namespace {

/// Shortest augmenting paths for rows <= columns; `cost(row, column)`. Answers the row of each
/// column, -1 for a free one.
template <typename Cost>
std::vector<int> match_columns(std::size_t rows, std::size_t columns, const Cost& cost) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  // Index 0 is the path's start, so that rows and columns count from 1 here.
  std::vector<double> row_price(rows + 1), column_price(columns + 1), slack(columns + 1);
  std::vector<std::size_t> row_of(columns + 1, 0), before(columns + 1, 0);
  std::vector<bool> visited(columns + 1);
  for (std::size_t row = 1; row <= rows; ++row) {
    row_of[0] = row;
    std::size_t at = 0;
    std::ranges::fill(slack, kInfinite);
    std::fill(visited.begin(), visited.end(), false);
    do {
      visited[at] = true;
      const std::size_t from = row_of[at];
      double least = kInfinite;
      std::size_t next = 0;
      for (std::size_t column = 1; column <= columns; ++column) {
        if (visited[column]) continue;
        const double reduced =
            double(cost(from - 1, column - 1)) - row_price[from] - column_price[column];
        if (reduced < slack[column]) {
          slack[column] = reduced;
          before[column] = at;
        }
        if (slack[column] < least) {
          least = slack[column];
          next = column;
        }
      }
      for (std::size_t column = 0; column <= columns; ++column) {
        if (visited[column]) {
          row_price[row_of[column]] += least;
          column_price[column] -= least;
        } else {
          slack[column] -= least;
        }
      }
      at = next;
    } while (row_of[at] != 0);
    while (at != 0) {
      row_of[at] = row_of[before[at]];
      at = before[at];
    }
  }
  std::vector<int> result(columns, -1);
  for (std::size_t column = 1; column <= columns; ++column) {
    result[column - 1] = static_cast<int>(row_of[column]) - 1;
  }
  return result;
}

}  // namespace

std::vector<int> assign(std::span<const float> costs, std::size_t rows, std::size_t columns) {
  std::vector<int> columns_of(rows, -1);
  if (rows == 0 || columns == 0) return columns_of;
  const auto cost = [&](std::size_t row, std::size_t column) {
    return std::min(costs[row * columns + column], kNoPair);
  };
  const auto accept = [&](std::size_t row, std::size_t column) {
    if (cost(row, column) < kNoPair) columns_of[row] = static_cast<int>(column);
  };
  if (rows <= columns) {
    const auto rows_of = match_columns(rows, columns, cost);
    for (std::size_t column = 0; column < columns; ++column) {
      if (rows_of[column] >= 0) accept(static_cast<std::size_t>(rows_of[column]), column);
    }
  } else {
    const auto flipped =
        match_columns(columns, rows, [&](std::size_t c, std::size_t r) { return cost(r, c); });
    for (std::size_t row = 0; row < rows; ++row) {
      if (flipped[row] >= 0) accept(row, static_cast<std::size_t>(flipped[row]));
    }
  }
  return columns_of;
}

}  // namespace penstock
