// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/output_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <system_error>
#include <utility>

#include "penstock/base/file_ops.h"
#include "penstock/base/str_format.h"

namespace penstock {

namespace fs = std::filesystem;

namespace {

/// A new file that is gone with this object unless it was moved away.
class TemporaryFile {
 public:
  static Result<TemporaryFile> create(const fs::path& beside) {
    // A process number would do, but in a container every one is 2, and one that was killed has
    // left its file behind.
    std::random_device random;
    const auto path =
        beside.parent_path() /
        str_format(".{}.{:08x}{:08x}.part", beside.filename().string(), random(), random());
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) return TemporaryFile(path, fd);
    const int error = errno;
    return fail(error == ENOENT ? ErrorKind::kNotFound : ErrorKind::kIo,
                str_format("cannot create '{}': {}", beside.string(),
                           std::generic_category().message(error)));
  }
  TemporaryFile(TemporaryFile&& other) noexcept
      : path_(std::exchange(other.path_, {})), fd_(std::move(other.fd_)) {}
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove(path_, ignored);
  }
  Result<void> write(std::span<const std::byte> bytes) {
    PENSTOCK_TRY(FileOps::system().write_all(fd_.get(), bytes));
    return FileOps::system().sync(fd_.get());
  }
  Result<void> move_to(const fs::path& path) {
    PENSTOCK_TRY(FileOps::system().rename(path_, path));
    path_.clear();
    return {};
  }

 private:
  TemporaryFile(fs::path path, int fd) : path_(std::move(path)), fd_(fd) {}
  fs::path path_;
  UniqueFd fd_;
};

}  // namespace

fs::path place_of(fs::path path) {
  std::error_code ec;
  // What the kernel follows at most.
  constexpr int kMaxLinks = 40;
  for (int i = 0; i < kMaxLinks && fs::is_symlink(fs::symlink_status(path, ec)); ++i) {
    const fs::path target = fs::read_symlink(path, ec);
    if (ec) break;
    path = path.parent_path() / target;  // An absolute target replaces it.
  }
  const fs::path absolute = fs::absolute(path, ec);
  const fs::path place = fs::weakly_canonical(absolute, ec);
  return ec ? absolute.lexically_normal() : place;
}

Result<void> check_creatable(const fs::path& path) {
  const fs::path place = place_of(path);
  std::error_code ec;
  const auto status = fs::status(place, ec);
  int error = fs::is_directory(status) ? EISDIR : 0;
  if (error == 0 && fs::exists(status)) {
    if (::access(place.c_str(), W_OK) != 0) error = errno;
  } else if (error == 0) {
    if (::access(place.parent_path().c_str(), W_OK | X_OK) != 0) error = errno;
    if (error == 0 && !fs::is_directory(place.parent_path(), ec)) error = ENOTDIR;
  }
  if (error == 0) return {};
  return fail(
      error == ENOENT || error == ENOTDIR ? ErrorKind::kNotFound : ErrorKind::kIo,
      str_format("cannot create '{}': {}", path.string(), std::generic_category().message(error)));
}

bool same_file(const fs::path& one, const fs::path& other) {
  std::error_code ec;
  const fs::file_status status = fs::status(one, ec);
  if (fs::exists(status) && !fs::is_regular_file(status)) return false;
  return fs::equivalent(one, other, ec) || place_of(one) == place_of(other);
}

Result<void, OutputError> replace_file(const fs::path& path, std::span<const std::byte> bytes) {
  std::error_code ignored;
  const auto place = place_of(path);
  const auto status = fs::status(place, ignored);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    FileOps& files = FileOps::system();
    auto file = files.create(place);
    if (!file) return cannot_create(std::move(file).error());
    auto written = files.write_all(file->get(), bytes);
    return written ? Result<void, OutputError>() : cannot_write(std::move(written).error());
  }
  auto file = TemporaryFile::create(place);
  if (!file) return cannot_create(std::move(file).error());
  if (auto written = file->write(bytes); !written) {
    return cannot_write(std::move(written).error());
  }
  auto moved = file->move_to(place);
  return moved ? Result<void, OutputError>() : cannot_create(std::move(moved).error());
}

}  // namespace penstock
