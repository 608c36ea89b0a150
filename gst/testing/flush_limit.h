// SPDX-License-Identifier: Apache-2.0
//
// How long a flush may take (contract L03).
#pragma once

#include <chrono>

namespace penstock::gst {

// The clause is about what users run. Under a sanitizer everything takes several times as long, and
// what is left to show is that nobody waits for a run.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::chrono::milliseconds kFlushLimit{1000};
#else
inline constexpr std::chrono::milliseconds kFlushLimit{100};
#endif

}  // namespace penstock::gst
