// SPDX-License-Identifier: Apache-2.0
//
// read_model_file and inspect_model: the disk's side of onnx_reader.h.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/base/unique_fd.h"
#include "penstock/model/onnx_reader.h"

namespace penstock {

Result<std::vector<std::byte>> read_model_file(const std::filesystem::path& path,
                                               std::size_t limit) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status{};
  if (!fd.is_valid() || ::fstat(fd.get(), &status) != 0) {
    return fail(errno == ENOENT ? ErrorKind::kNotFound : ErrorKind::kIo,
                str_format("cannot open '{}': {}", path.string(), std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode) || std::cmp_greater(status.st_size, limit)) {
    return fail(ErrorKind::kUnsupported,
                str_format("'{}' is no regular file of at most {} bytes", path.string(), limit));
  }
  std::vector<std::byte> bytes;
  try {
    bytes.resize(static_cast<std::size_t>(status.st_size));
  } catch (const std::bad_alloc&) {
    return fail(ErrorKind::kExhausted,
                str_format("no memory for the {} bytes of '{}'", status.st_size, path.string()));
  }
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got = ::read(fd.get(), bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return fail(ErrorKind::kIo,
                  str_format("cannot read '{}': {}", path.string(), std::strerror(errno)));
    }
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  bytes.resize(size);
  return bytes;
}

Result<OnnxSummary> inspect_model(const std::filesystem::path& path) {
  auto bytes = read_model_file(path);
  if (!bytes) return std::unexpected(bytes.error());
  auto summary = read_onnx_summary(*bytes);
  if (!summary) {
    return std::unexpected(std::move(summary).error().context(str_format("'{}'", path.string())));
  }
  return summary;
}

}  // namespace penstock
