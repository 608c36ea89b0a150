// SPDX-License-Identifier: Apache-2.0
//
// Storage is a shared owner of bytes on one device. It is passed as std::shared_ptr; the bytes go
// back to the device's pool when the last owner lets go. A host pointer exists only for
// host-visible Storage: elsewhere bytes are reached inside a job, through the Access that
// Device::submit gives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "penstock/base/error.h"
#include "penstock/memory/device_id.h"

namespace penstock {

class SharedFile;

class Storage {
 public:
  virtual ~Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  virtual DeviceId device() const = 0;
  virtual std::size_t size() const = 0;
  /// Empty unless the storage is host-visible.
  virtual std::span<std::byte> host_bytes() = 0;
  /// The address handed out for this storage: an identity, and on `sim` a PROT_NONE mapping that
  /// faults when anybody reads it.
  virtual std::uintptr_t address() const = 0;

  /// The file that these bytes are the first size() ones of, for storage that other processes can
  /// map (DeviceOptions::shareable); else null.
  virtual std::shared_ptr<SharedFile> shared_file() const { return nullptr; }

 protected:
  Storage() = default;
};

using StoragePtr = std::shared_ptr<Storage>;

/// A byte range of a Storage. Invariant (checked by make): offset + size <= storage->size().
struct StorageRegion {
  StoragePtr storage;
  std::size_t offset = 0;
  std::size_t size = 0;

  /// kInvalidArgument when `storage` is null or the range leaves it.
  static Result<StorageRegion> make(StoragePtr storage, std::size_t offset, std::size_t size);
  static StorageRegion whole(StoragePtr storage);
};

/// Checks the invariant of a region that was not built by make.
Result<void> validate(const StorageRegion& region);

/// Turns storage into bytes for the length of one device job; not to be kept.
class Access {
 public:
  virtual ~Access() = default;
  /// All bytes of `storage`, which must belong to the job's device: another device's storage is a
  /// bug that ends the process with a message, as an illegal address would on a GPU.
  virtual std::span<std::byte> bytes(const Storage& storage) const = 0;
  std::span<std::byte> bytes(const StorageRegion& region) const {
    return bytes(*region.storage).subspan(region.offset, region.size);
  }
};

/// Host memory owned by somebody else (a mapped GstBuffer, say), seen as `cpu` Storage. `owner` is
/// released with the last reference. Read-only by contract when `bytes` came from a const mapping.
StoragePtr wrap_host_memory(std::span<std::byte> bytes, std::shared_ptr<const void> owner);

}  // namespace penstock
