// SPDX-License-Identifier: Apache-2.0
#include "penstock/memory/sim/shadow_blocks.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "penstock/base/str_format.h"
#include "penstock/base/unique_fd.h"
#include "penstock/memory/sim/sim_device.h"

namespace penstock {
namespace {

std::unexpected<Error> fail_errno(std::string_view call) {
  return fail(ErrorKind::kExhausted,
              str_format("{}: {}", call, std::generic_category().message(errno)));
}

}  // namespace

Result<Block> ShadowBlocks::make(std::size_t size) {
  const UniqueFd fd(::memfd_create("penstock-sim", MFD_CLOEXEC));
  if (!fd.is_valid()) return fail_errno("memfd_create");
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return fail_errno("ftruncate");
  void* const address = ::mmap(nullptr, size, PROT_NONE, MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) return fail_errno("mmap");
  void* const alias = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (alias == MAP_FAILED) {
    const auto error = fail_errno("mmap");
    ::munmap(address, size);
    return error;
  }
  const Block block{.address = static_cast<std::byte*>(address),
                    .bytes = static_cast<std::byte*>(alias),
                    .size = size};
  poison(block);
  return block;
}

void ShadowBlocks::destroy(const Block& block) {
  ::munmap(block.address, block.size);
  ::munmap(block.bytes, block.size);
}

std::size_t ShadowBlocks::granule() const { return static_cast<std::size_t>(::getpagesize()); }

void ShadowBlocks::poison(const Block& block) { std::memset(block.bytes, kSimPoison, block.size); }

}  // namespace penstock
