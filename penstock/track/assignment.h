// SPDX-License-Identifier: Apache-2.0
//
// The assignment problem: which row goes with which column, at the least cost in all.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace penstock {

/// What it costs to go without: a pair that costs as much or more is never made, and one is broken
/// up where that helps others more.
inline constexpr float kNoPair = 1.0f;

/// `costs` is row-major, rows x columns, each 0 or more. Answers the column of each row, -1 for a
/// row without one. O(n^2 m) with n the smaller side (Jonker-Volgenant's shortest augmenting
/// paths). Deterministic.
std::vector<int> assign(std::span<const float> costs, std::size_t rows, std::size_t columns);

}  // namespace penstock
