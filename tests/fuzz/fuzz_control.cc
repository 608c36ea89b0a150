// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a message of a burst's socket, with any number of files: refused with a reason, or a
// message that comes out the same when it is sent again. The first byte says how many files come.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "penstock/burst/control_messages.h"

namespace penstock {
namespace {

std::vector<UniqueFd> some_files(std::size_t count) {
  std::vector<UniqueFd> files;
  for (std::size_t i = 0; i < count; ++i) {
    files.emplace_back(::memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!files.back().is_valid()) std::abort();
  }
  return files;
}

FdMessage received(std::span<const std::byte> bytes, std::size_t files) {
  return {.bytes = {bytes.begin(), bytes.end()}, .files = some_files(files)};
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  const std::size_t files = data[0] % (FdSocket::kMaxFiles + 1);
  const auto decoded = decode_control(received(bytes, files));
  if (!decoded) {
    if (decoded.error().kind() != ErrorKind::kCorrupt || decoded.error().message().empty()) {
      std::abort();
    }
    return 0;
  }
  const auto sent = encode(*decoded);
  if (!sent || sent->files.size() != files) std::abort();
  // The form has no two ways to say a thing.
  if (!std::ranges::equal(sent->bytes, bytes)) std::abort();
  return 0;
}
