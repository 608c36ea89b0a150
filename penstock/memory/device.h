// SPDX-License-Identifier: Apache-2.0
//
// Device: allocate, submit, copy, read back. It knows no letterbox and no NMS, and the rest of the
// code never asks which device it has.
//
//   auto fence = device.submit({frame, tensor.storage}, {frame_ready}, [=](const Access& access) {
//     return kernel(access.bytes(*frame->planes[0].storage), access.bytes(*tensor.storage));
//   });
//
// `cpu` runs a job on the calling thread before submit() returns; `sim` and GPUs run it on a queue.
// Devices are shared (std::shared_ptr) and thread-safe. Destroying one waits for its jobs.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/memory/device_id.h"
#include "penstock/memory/fence.h"
#include "penstock/memory/storage.h"
#include "penstock/observe/copy_ledger.h"

namespace penstock {

/// Why bytes cross between host and device. Each purpose has a size limit (contract A01).
enum class TransferPurpose {
  kDetections,   ///< Compact detection records: at most 7204 bytes (count + 300 x 24).
  kMetadata,     ///< Other compact results and drawing commands: at most 256 KiB.
  kTestContent,  ///< Test plugin's upload and download only; not limited.
};
std::size_t transfer_limit(TransferPurpose purpose);

class Device {
 public:
  using Owner = std::shared_ptr<const void>;
  using Job = std::move_only_function<Result<void>(const Access&)>;

  virtual ~Device() = default;

  virtual DeviceId id() const = 0;

  /// Uninitialised bytes, 64-byte aligned, from the device's pool. kExhausted over the budget.
  virtual Result<StoragePtr> allocate(std::size_t bytes) = 0;

  /// Runs `job` once every fence of `after` has passed; a failed fence fails this one without
  /// running the job. `uses` (storages, frames, anything) and the job itself live until the
  /// returned fence passes, and whoever has waited for it finds them released. A job must not wait
  /// for other device work. An error means that the job was not and will not be run.
  virtual Result<Fence> submit(std::vector<Owner> uses, std::vector<Fence> after, Job job) = 0;

  /// Device-to-device copy of equally sized regions.
  virtual Result<Fence> copy(StorageRegion destination, StorageRegion source,
                             std::vector<Fence> after) = 0;

  /// Marked transfers; block until done. Refused (kInvalidArgument) above the purpose's limit;
  /// recorded in the ledger.
  virtual Result<void> read_back(std::span<std::byte> destination, StorageRegion source,
                                 const std::vector<Fence>& after, TransferPurpose purpose) = 0;
  virtual Result<void> upload(StorageRegion destination, std::span<const std::byte> source,
                              TransferPurpose purpose) = 0;

  virtual CopyLedger& ledger() = 0;
};

using DevicePtr = std::shared_ptr<Device>;

struct DeviceOptions {
  /// Upper bound of live + pooled bytes.
  std::size_t memory_budget = std::size_t{4} << 30;
  /// Free storages kept for reuse, in bytes (a fresh 2 MB mapping costs more than its kernel).
  std::size_t pool_limit = std::size_t{256} << 20;
  /// Host memory that other processes can map and read (Storage::shared_file), a file a storage;
  /// `cpu` only. Storages then begin at pages and take whole ones.
  bool shareable = false;
};

/// Opens a device of this build: `cpu` here; cuda and hip answer kUnsupported until they exist, and
/// `sim` is only made by its own constructor (memory/sim/sim_device.h) in tests.
Result<DevicePtr> open_device(DeviceId id, const DeviceOptions& options = {});

}  // namespace penstock
