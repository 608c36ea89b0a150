// SPDX-License-Identifier: Apache-2.0
#include "penstock/observe/copy_ledger.h"

namespace penstock {

std::string_view to_string(CopyClass copy_class) {
  switch (copy_class) {
    case CopyClass::kSweep:
      return "sweep";
    case CopyClass::kFrame:
      return "frame";
    case CopyClass::kTensor:
      return "tensor";
    case CopyClass::kReadback:
      return "readback";
    case CopyClass::kUpload:
      return "upload";
    case CopyClass::kUpstream:
      return "upstream";
  }
  return "unknown";
}

void CopyLedger::record(CopyClass copy_class, std::string_view site, std::uint64_t bytes,
                        std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  auto row = rows_.find(std::pair(copy_class, site));
  if (row == rows_.end()) {
    // Every class may add its "other" beyond the limit, so the map stays bounded and no copy goes
    // uncounted.
    if (rows_.size() >= kMaxSites) site = "other";
    row = rows_
              .try_emplace(std::pair(copy_class, std::string(site)),
                           Row{.copy_class = copy_class, .site = std::string(site)})
              .first;
  }
  row->second.count += count;
  row->second.bytes += bytes;
}

std::vector<CopyLedger::Row> CopyLedger::rows() const {
  const std::lock_guard lock(mutex_);
  std::vector<Row> rows;
  rows.reserve(rows_.size());
  for (const auto& [key, row] : rows_) rows.push_back(row);
  return rows;
}

std::uint64_t CopyLedger::count(CopyClass copy_class) const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (const auto& [key, row] : rows_) {
    if (key.first == copy_class) sum += row.count;
  }
  return sum;
}

std::uint64_t CopyLedger::bytes(CopyClass copy_class) const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (const auto& [key, row] : rows_) {
    if (key.first == copy_class) sum += row.bytes;
  }
  return sum;
}

}  // namespace penstock
