// SPDX-License-Identifier: Apache-2.0
#include "penstock/base/unique_fd.h"

#include <unistd.h>

namespace penstock {

void UniqueFd::reset(int fd) {
  const int old = std::exchange(fd_, fd);
  // Linux releases the descriptor even when close() reports EINTR or EIO; retrying could close one
  // that another thread has just opened.
  if (old >= 0 && old != fd) ::close(old);
}

}  // namespace penstock
