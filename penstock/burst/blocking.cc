// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/blocking.h"

namespace penstock {
namespace {

WaitPlace place_of(const WaitMeans& means, std::uint32_t bits, const WaitOptions& options) {
  return {.lifeline = means.lifeline,
          .flag = means.flag,
          .bits = bits,
          .clock = means.clock,
          .slice = means.slice,
          .slept = options.slept};
}

/// Both are refused where one is 0: the peer that is not woken would wait for its deadline.
Result<void, QueueError> check_bits(const WaitMeans& means, const WaitOptions& options) {
  if (means.flag && (options.not_full == 0 || options.not_empty == 0)) {
    return std::unexpected(QueueError::kNoBits);
  }
  return {};
}

}  // namespace

Result<void, QueueError> write_blocking(RingWriter& writer, const WaitMeans& means,
                                        const std::byte* from, std::size_t count, Deadline deadline,
                                        const WaitOptions& options) {
  if (count == 0) return {};
  PENSTOCK_TRY(check_bits(means, options));
  Waiter waiter(place_of(means, options.not_full, options), deadline, options.poll_window);
  PENSTOCK_TRY(waiter.admit());
  while (true) {
    const auto written = writer.write(from, count);
    if (written && means.flag) means.flag->wake(options.not_empty);
    if (written || written.error() != QueueError::kFull) return written;
    PENSTOCK_TRY(waiter.pause());
  }
}

Result<void, QueueError> read_blocking(RingReader& reader, const WaitMeans& means, std::byte* to,
                                       std::size_t count, Deadline deadline,
                                       const WaitOptions& options) {
  if (count == 0) return {};
  PENSTOCK_TRY(check_bits(means, options));
  Waiter waiter(place_of(means, options.not_empty, options), deadline, options.poll_window);
  PENSTOCK_TRY(waiter.admit());
  while (true) {
    const auto got = reader.read(to, count);
    if (got && means.flag) means.flag->wake(options.not_full);
    if (got || got.error() != QueueError::kEmpty) return got;
    PENSTOCK_TRY(waiter.pause());
  }
}

Result<std::size_t, QueueError> wait_for_items(RingReader& reader, const WaitMeans& means,
                                               std::size_t count, Deadline deadline,
                                               const WaitOptions& options) {
  if (count > reader.capacity()) return std::unexpected(QueueError::kTooMany);
  PENSTOCK_TRY(check_bits(means, options));
  Waiter waiter(place_of(means, options.not_empty, options), deadline, options.poll_window);
  PENSTOCK_TRY(waiter.admit());
  while (true) {
    const auto available = reader.available();
    if (!available || *available >= count) return available;
    PENSTOCK_TRY(waiter.pause());
  }
}

}  // namespace penstock
