// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/shared_copy.h"

#include <cstdint>
#include <cstring>

namespace penstock {
namespace {

// Any object's bytes may be accessed through it.
using Word [[gnu::may_alias]] = std::uint64_t;

bool takes_a_word(const std::byte* shared, std::size_t size) {
  return size >= sizeof(Word) && reinterpret_cast<std::uintptr_t>(shared) % sizeof(Word) == 0;
}

}  // namespace

void copy_from_shared(std::byte* to, const std::byte* shared, std::size_t size) {
  while (size > 0) {
    std::size_t step = 1;
    if (takes_a_word(shared, size)) {
      const Word word = __atomic_load_n(reinterpret_cast<const Word*>(shared), __ATOMIC_RELAXED);
      step = sizeof word;
      std::memcpy(to, &word, step);
    } else {
      const auto value = __atomic_load_n(reinterpret_cast<const std::uint8_t*>(shared),  //
                                         __ATOMIC_RELAXED);
      *to = std::byte{value};
    }
    to += step;
    shared += step;
    size -= step;
  }
}

void copy_to_shared(std::byte* shared, const std::byte* from, std::size_t size) {
  while (size > 0) {
    std::size_t step = 1;
    if (takes_a_word(shared, size)) {
      Word word = 0;
      step = sizeof word;
      std::memcpy(&word, from, step);
      __atomic_store_n(reinterpret_cast<Word*>(shared), word, __ATOMIC_RELAXED);
    } else {
      __atomic_store_n(reinterpret_cast<std::uint8_t*>(shared),
                       std::to_integer<std::uint8_t>(*from), __ATOMIC_RELAXED);
    }
    shared += step;
    from += step;
    size -= step;
  }
}

}  // namespace penstock
