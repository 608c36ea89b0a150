// SPDX-License-Identifier: Apache-2.0
//
// Overflow-checked arithmetic for sizes that come from outside (caps, shapes, file headers).
#pragma once

#include <concepts>
#include <optional>

namespace penstock {

/// The product of all factors, or nothing when it does not fit.
template <std::integral T, std::same_as<T>... Ts>
[[nodiscard]] constexpr std::optional<T> checked_product(T first, Ts... rest) {
  T product = first;
  for (T factor : {T{1}, rest...}) {
    if (__builtin_mul_overflow(product, factor, &product)) return std::nullopt;
  }
  return product;
}

/// The sum of all terms, or nothing when it does not fit.
template <std::integral T, std::same_as<T>... Ts>
[[nodiscard]] constexpr std::optional<T> checked_sum(T first, Ts... rest) {
  T sum = first;
  for (T term : {T{0}, rest...}) {
    if (__builtin_add_overflow(sum, term, &sum)) return std::nullopt;
  }
  return sum;
}

}  // namespace penstock
