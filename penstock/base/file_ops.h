// SPDX-License-Identifier: Apache-2.0
//
// The disk seam: everything Penstock writes goes through FileOps, so that tests can fill the disk,
// fail an fsync or cut a write short. FileOps::system() is the real thing.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "penstock/base/error.h"
#include "penstock/base/unique_fd.h"

namespace penstock {

class FileOps {
 public:
  virtual ~FileOps() = default;

  /// Creates or truncates `path` for writing (0644, O_CLOEXEC).
  virtual Result<UniqueFd> create(const std::filesystem::path& path) = 0;
  /// Writes all of `bytes`, continuing after short writes and EINTR. ENOSPC is kExhausted.
  virtual Result<void> write_all(int fd, std::span<const std::byte> bytes) = 0;
  virtual Result<void> sync(int fd) = 0;
  virtual Result<void> rename(const std::filesystem::path& from,
                              const std::filesystem::path& to) = 0;

  static FileOps& system();
};

}  // namespace penstock
