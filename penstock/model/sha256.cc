// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/sha256.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "penstock/base/str_format.h"
#include "penstock/base/unique_fd.h"
#include "penstock/model/manifest.h"

namespace penstock {
namespace {

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    ok_ = context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1;
  }
  void update(std::span<const std::byte> bytes) {
    ok_ = ok_ && EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1;
  }
  Result<std::string> finish() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
    unsigned int size = 0;
    ok_ = ok_ && EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1;
    if (!ok_) return fail(ErrorKind::kInternal, "OpenSSL offers no SHA-256");
    std::string hex;
    for (unsigned int i = 0; i < size; ++i) hex += str_format("{:02x}", digest[i]);
    return hex;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
  bool ok_ = false;
};

}  // namespace

Result<std::string> sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

Result<std::string> sha256_file(const std::filesystem::path& path) {
  // Not to wait for the writer of a FIFO, which fstat then refuses.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.is_valid()) {
    const ErrorKind kind = errno == ENOENT   ? ErrorKind::kNotFound
                           : errno == EACCES ? ErrorKind::kPermission
                                             : ErrorKind::kIo;
    return fail(kind, str_format("cannot open '{}': {}", path.string(), std::strerror(errno)));
  }
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("'{}' is not a regular file", path.string()));
  }
  Sha256 hash;
  std::array<std::byte, 1 << 16> buffer;
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return fail(ErrorKind::kIo,
                  str_format("cannot read '{}': {}", path.string(), std::strerror(errno)));
    }
    if (got == 0) break;
    hash.update(std::span(buffer).first(static_cast<std::size_t>(got)));
  }
  return hash.finish();
}

}  // namespace penstock
