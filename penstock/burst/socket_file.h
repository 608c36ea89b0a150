// SPDX-License-Identifier: Apache-2.0
//
// SocketFile: a Unix seqpacket socket that listens under a name in the file system, for its user
// only (0600). The name goes with it, unless another server has it by then.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/unique_fd.h"

namespace penstock {

class SocketFile {
 public:
  /// A socket file that a dead server left is replaced; one that somebody listens at, or another
  /// kind of file, is kInvalidArgument. kPermission, kNotFound (its folder), kExhausted, kIo.
  static Result<SocketFile> listen(const std::filesystem::path& path);

  SocketFile(SocketFile&& other) noexcept = default;
  SocketFile& operator=(SocketFile&&) = delete;
  ~SocketFile();

  /// Non-blocking.
  int fd() const { return socket_.get(); }
  const std::filesystem::path& path() const { return path_; }
  /// Takes the name away; who has connected already can still be accepted.
  void remove_name();

 private:
  SocketFile(UniqueFd socket, std::filesystem::path path, dev_t device, ino_t number)
      : socket_(std::move(socket)), path_(std::move(path)), device_(device), number_(number) {}

  UniqueFd socket_;  // Invalid: moved from, and nothing to remove.
  std::filesystem::path path_;
  dev_t device_;
  ino_t number_;
};

}  // namespace penstock
