// SPDX-License-Identifier: Apache-2.0
//
// CopyLedger accounts for every time pixels, tensors or records move. Whoever copies records it
// where it happens; the run report, `penstock audit` and the A03 tests read it. Thread-safe,
// bounded: entries are summed by (class, call site), at most kMaxSites sites, more are counted
// under "other".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock {

enum class CopyClass {
  kSweep,     ///< A frame read in place by a preprocessing kernel; a read, not a copy.
  kFrame,     ///< Decoded pixels copied or converted. On `cpu` and `sim` this stays 0.
  kTensor,    ///< Tensor bytes copied (batch assembly, ownership copy).
  kReadback,  ///< Compact records, device to host, as a marked transfer.
  kUpload,    ///< Marked host-to-device transfer.
  kUpstream,  ///< Copies made by the decoder before our sink pad; reported apart.
};
inline constexpr int kCopyClassCount = 6;
std::string_view to_string(CopyClass copy_class);

class CopyLedger {
 public:
  static constexpr std::size_t kMaxSites = 64;

  struct Row {
    CopyClass copy_class;
    std::string site;  ///< Where, e.g. "media/preprocess".
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
  };

  void record(CopyClass copy_class, std::string_view site, std::uint64_t bytes,
              std::uint64_t count = 1);
  /// Rows by class, then site.
  std::vector<Row> rows() const;
  std::uint64_t count(CopyClass copy_class) const;
  std::uint64_t bytes(CopyClass copy_class) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<CopyClass, std::string>, Row, std::less<>> rows_;
};

}  // namespace penstock
