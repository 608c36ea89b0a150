// SPDX-License-Identifier: Apache-2.0
#include "penstock/observe/latency.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace penstock {
namespace {

// Values are nanoseconds. Octave 0 is [0, 2^10) ns in 128 steps of 8 ns; octave k >= 1 is
// [2^(k+9), 2^(k+10)) in 128 equal steps, so a step is at most 1/128 = 0.79 % of its values. The
// last octave ends at 2^40 ns = 1100 s; longer times count there.
constexpr int kSteps = 128;
constexpr int kFirstBits = 10;
constexpr int kLastBits = 40;

int index_of(Nanoseconds value) {
  const auto ns = static_cast<std::uint64_t>(
      std::clamp<std::int64_t>(value.count(), 0, (std::int64_t{1} << kLastBits) - 1));
  const int bits = std::bit_width(ns);
  if (bits <= kFirstBits) return static_cast<int>(ns >> (kFirstBits - 7));
  const int octave = bits - kFirstBits;
  const auto step = (ns >> (bits - 1 - 7)) - kSteps;  // The 7 bits below the leading one.
  return octave * kSteps + static_cast<int>(step);
}

Nanoseconds upper_edge(int index) {
  const int octave = index / kSteps;
  const std::int64_t step = index % kSteps;
  if (octave == 0) return Nanoseconds((step + 1) << (kFirstBits - 7));
  return Nanoseconds((kSteps + step + 1) << (octave + kFirstBits - 1 - 7));
}

}  // namespace

void LatencyHistogram::record(Nanoseconds value) {
  static_assert(kBuckets == kSteps * (kLastBits - kFirstBits + 1));
  counts_[index_of(value)].fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t LatencyHistogram::count() const {
  std::uint64_t sum = 0;
  for (const auto& bucket : counts_) sum += bucket.load(std::memory_order_relaxed);
  return sum;
}

Nanoseconds LatencyHistogram::percentile(double quantile) const {
  // One snapshot, so that concurrent records cannot move the rank past the end.
  const std::vector<Bucket> snapshot = buckets();
  std::uint64_t total = 0;
  for (const Bucket& bucket : snapshot) total += bucket.count;
  if (total == 0) return Nanoseconds::zero();
  const double wanted = std::ceil(std::clamp(quantile, 0.0, 1.0) * static_cast<double>(total));
  const auto rank = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1, total);
  std::uint64_t seen = 0;
  for (const Bucket& bucket : snapshot) {
    seen += bucket.count;
    if (seen >= rank) return bucket.upper;
  }
  return snapshot.back().upper;
}

std::vector<LatencyHistogram::Bucket> LatencyHistogram::buckets() const {
  std::vector<Bucket> result;
  for (int i = 0; i < kBuckets; ++i) {
    const std::uint64_t count = counts_[i].load(std::memory_order_relaxed);
    if (count > 0) result.push_back({upper_edge(i), count});
  }
  return result;
}

}  // namespace penstock
