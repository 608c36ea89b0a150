// SPDX-License-Identifier: Apache-2.0
//
// Making and reaching the control socket's file.
#pragma once

#include <cstdint>
#include <filesystem>

#include "penstock/base/error.h"
#include "penstock/base/unique_fd.h"

namespace penstock {

struct ListeningSocket {
  UniqueFd fd;
  std::uint64_t inode = 0;
};

/// As ControlServer::open().
Result<ListeningSocket> listen_at(const std::filesystem::path& path);

/// What listen_at() would say of the path itself now, whoever listens there.
Result<void> check_listenable(const std::filesystem::path& path);

/// Connected, non-blocking. kNotFound when there is no socket or nobody behind it, kPermission,
/// kIo.
Result<UniqueFd> connect_to(const std::filesystem::path& path);

/// The user at the other end is this process's own or root.
bool is_trusted_peer(int fd);

/// Of the file itself, 0 when there is none.
std::uint64_t inode_of(const std::filesystem::path& path);

}  // namespace penstock
