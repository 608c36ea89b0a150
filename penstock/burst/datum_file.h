// SPDX-License-Identifier: Apache-2.0
//
// A packet of the direct path: datums in a memfd that nobody can change any more.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/unique_fd.h"
#include "penstock/burst/burst_model.h"
#include "penstock/burst/message_queue.h"

namespace penstock {

/// kExhausted, kIo.
Result<UniqueFd> write_datum_file(std::span<const std::byte> datums);
/// All of it; kCorrupt for a file that can still change, or that is no packet of at most
/// kMaxDirectDatums of `quantum` bytes.
Result<std::vector<std::byte>> read_datum_file(const UniqueFd& file, std::size_t quantum);

template <PlainOldData Datum>
Result<std::vector<Datum>> read_datums(const UniqueFd& file) {
  const auto bytes = read_datum_file(file, sizeof(Datum));
  if (!bytes) return std::unexpected(bytes.error());
  std::vector<Datum> datums(bytes->size() / sizeof(Datum));
  const auto to = std::as_writable_bytes(std::span(datums));
  std::ranges::copy(*bytes, to.begin());
  return datums;
}

}  // namespace penstock
