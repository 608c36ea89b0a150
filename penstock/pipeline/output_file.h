// SPDX-License-Identifier: Apache-2.0
//
// OutputFile is one open output of a run. It knows two things that a descriptor alone does not:
// that a path may be this process's own stdout or stderr, and that a file may be gone at the end.
//
//   auto file = OutputFile::open("/dev/stdout", files);
//   files.write_all(file->fd(), bytes);
//   PENSTOCK_TRY(file->check_kept());                     // before it is closed
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "penstock/base/error.h"
#include "penstock/base/file_ops.h"
#include "penstock/base/unique_fd.h"

namespace penstock {

/// STDOUT_FILENO or STDERR_FILENO when `path` is what that writes to, by whatever name; else -1.
/// Devices that are no terminals (/dev/null) are nobody's.
int standard_descriptor_of(const std::filesystem::path& path);

class OutputFile {
 public:
  OutputFile() = default;
  /// Creates or truncates `path` by `files`. kIo, and nothing is truncated, while another process
  /// has a regular file open as an OutputFile. A path that is stdout or stderr is written through
  /// that descriptor instead, where it stands: opened anew it would have a place of its own in the
  /// file, and each would overwrite the other.
  static Result<OutputFile> open(const std::filesystem::path& path, FileOps& files);

  int fd() const { return fd_.get(); }
  bool is_open() const { return fd_.is_valid(); }
  /// kIo when the file had a name once and has none any more, or is shorter than the `written`
  /// bytes: what was written is lost.
  Result<void> check_kept(std::uint64_t written = 0) const;
  /// Takes off what lies behind `size` bytes of a file that open() made; others stay as they are.
  void cut_to(std::uint64_t size);
  /// Bytes in the file that open() made; nothing of others.
  std::optional<std::uint64_t> size() const;
  void close() { fd_.reset(); }

 private:
  UniqueFd fd_;
  std::filesystem::path path_;
  UniqueFd lock_;  ///< Of what was there before.
  bool named_ = false;
  bool own_ = false;  ///< A regular file that open() made.
};

}  // namespace penstock
