// SPDX-License-Identifier: Apache-2.0
//
// SharedFile is memory of this process that others can map: a sealed memfd and this process's
// writable mapping of it. What another process may do with the file is decided when it is made:
//
//   kRead       it was sealed against further writers; any number of processes can map and read it
//   kReadWrite  one process maps it and seals it then, which this one checks (settle) before it
//               touches bytes that the other wrote
//
// All pages are there from the start, and none can go: touching them never faults. Thread-safe; the
// bytes are whoever's turn it is.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/unique_fd.h"
#include "penstock/memory/shared_mapping.h"

namespace penstock {

class SharedFile {
 public:
  /// All zero. `size` is rounded up to whole pages. kInvalidArgument for 0, kExhausted.
  static Result<std::shared_ptr<SharedFile>> create(std::size_t size, MapAccess peers);

  /// Calls what when_gone() was given. Peers' mappings stay theirs.
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  MapAccess peers() const { return peers_; }
  std::span<std::byte> bytes() const { return {mapping_.data(), mapping_.size()}; }
  std::size_t size() const { return mapping_.size(); }

  /// To be sent. kUnsupported when it has been settled: only one process can have it.
  Result<UniqueFd> duplicate() const;

  /// kReadWrite, when the other process says that it has it: kCorrupt unless that has been sealed
  /// against holes; afterwards the file itself is closed. Nothing to do for kRead, or a second
  /// time.
  Result<void> settle();

  /// `tell` is called once, in the thread that lets go of this last. For who has told others of it.
  void when_gone(std::function<void()> tell);

 private:
  SharedFile(UniqueFd file, SharedMapping mapping, MapAccess peers);

  const SharedMapping mapping_;
  const MapAccess peers_;
  mutable std::mutex mutex_;
  std::atomic<bool> is_settled_{false};
  UniqueFd file_;
  std::vector<std::function<void()>> tell_;
};

}  // namespace penstock
