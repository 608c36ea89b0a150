// SPDX-License-Identifier: Apache-2.0
//
// Which of Highway's targets kernels are compiled for: include it before foreach_target.h.
//
// Each target compiles a kernel once more, and the largest took a fifth of the first demo's build.
// Left out are x86 targets whose machines run the next smaller one's code as well: SSSE3 and the
// refinements of AVX-512, until a benchmark shows what a kernel gains by one.
#pragma once

// Under a sanitizer a target takes ten times as long: the baseline and AVX2 are what is looked at.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3 | HWY_AVX3_DL | HWY_AVX3_ZEN4 | HWY_AVX3_SPR | HWY_AVX10_2)
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_AVX3_ZEN4 | HWY_AVX3_SPR | HWY_AVX10_2)
#endif
