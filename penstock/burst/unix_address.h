// SPDX-License-Identifier: Apache-2.0
//
// The address of a Unix socket file.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>

#include "penstock/base/error.h"
#include "penstock/base/str_format.h"

namespace penstock {

class UnixAddress {
 public:
  /// kInvalidArgument for a name that the kernel has no room for, or that is empty.
  static Result<UnixAddress> of(const std::filesystem::path& path) {
    UnixAddress address;
    const std::string& name = path.native();
    if (name.empty() || name.size() >= sizeof address.address_.sun_path ||
        name.find('\0') != std::string::npos) {
      return fail(ErrorKind::kInvalidArgument,
                  str_format("socket '{}': a name has 1 to {} bytes", name,
                             sizeof address.address_.sun_path - 1));
    }
    address.address_.sun_family = AF_UNIX;
    std::ranges::copy(name, &address.address_.sun_path[0]);
    return address;
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  static socklen_t size() { return sizeof(sockaddr_un); }

 private:
  sockaddr_un address_{};
};

}  // namespace penstock
