// SPDX-License-Identifier: Apache-2.0
#include "penstock/memory/storage.h"

#include <utility>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

class WrappedHostStorage final : public Storage {
 public:
  WrappedHostStorage(std::span<std::byte> bytes, std::shared_ptr<const void> owner)
      : bytes_(bytes), owner_(std::move(owner)) {}

  DeviceId device() const override { return {DeviceKind::kCpu, 0}; }
  std::size_t size() const override { return bytes_.size(); }
  std::span<std::byte> host_bytes() override { return bytes_; }
  std::uintptr_t address() const override {
    return reinterpret_cast<std::uintptr_t>(bytes_.data());
  }

 private:
  const std::span<std::byte> bytes_;
  const std::shared_ptr<const void> owner_;
};

}  // namespace

Result<StorageRegion> StorageRegion::make(StoragePtr storage, std::size_t offset,
                                          std::size_t size) {
  StorageRegion region{std::move(storage), offset, size};
  PENSTOCK_TRY(validate(region));
  return region;
}

StorageRegion StorageRegion::whole(StoragePtr storage) {
  const std::size_t size = storage ? storage->size() : 0;
  return {std::move(storage), 0, size};
}

Result<void> validate(const StorageRegion& region) {
  if (!region.storage) {
    return fail(ErrorKind::kInvalidArgument, "the region has no storage behind it");
  }
  const std::size_t size = region.storage->size();
  if (region.offset > size || region.size > size - region.offset) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("a region of {} bytes at offset {} leaves its storage of {} bytes",
                           region.size, region.offset, size));
  }
  return {};
}

StoragePtr wrap_host_memory(std::span<std::byte> bytes, std::shared_ptr<const void> owner) {
  return std::make_shared<WrappedHostStorage>(bytes, std::move(owner));
}

}  // namespace penstock
