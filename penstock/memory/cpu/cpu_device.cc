// SPDX-License-Identifier: Apache-2.0
#include "penstock/memory/cpu/cpu_device.h"

#include <cstring>
#include <utility>

#include "penstock/memory/block_pool.h"
#include "penstock/memory/cpu/host_blocks.h"
#include "penstock/memory/cpu/shared_blocks.h"
#include "penstock/memory/device_checks.h"

namespace penstock {
namespace {

constexpr DeviceId kCpu{DeviceKind::kCpu, 0};

class CpuStorage final : public Storage {
 public:
  CpuStorage(std::shared_ptr<BlockPool> pool, const Block& block, std::size_t size)
      : pool_(std::move(pool)), block_(block), size_(size) {}
  ~CpuStorage() override { pool_->give_back(block_); }

  DeviceId device() const override { return kCpu; }
  std::size_t size() const override { return size_; }
  std::span<std::byte> host_bytes() override { return {block_.bytes, size_}; }
  std::uintptr_t address() const override {
    return reinterpret_cast<std::uintptr_t>(block_.address);
  }
  std::shared_ptr<SharedFile> shared_file() const override { return block_.file; }

 private:
  const std::shared_ptr<BlockPool> pool_;
  const Block block_;
  const std::size_t size_;
};

std::unique_ptr<BlockSource> blocks_for(const DeviceOptions& options) {
  if (options.shareable) return std::make_unique<SharedBlocks>();
  return std::make_unique<HostBlocks>();
}

class CpuAccess final : public Access {
 public:
  std::span<std::byte> bytes(const Storage& storage) const override {
    if (storage.device() != kCpu) refuse_access(kCpu, storage);
    // Storage is only ever made as a non-const object; being const here is a view of the caller's.
    return const_cast<Storage&>(storage).host_bytes();
  }
};

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const DeviceOptions& options)
      : pool_(std::make_shared<BlockPool>(kCpu, blocks_for(options), options)) {}
  ~CpuDevice() override { pool_->close(); }

  DeviceId id() const override { return kCpu; }

  Result<StoragePtr> allocate(std::size_t bytes) override {
    Result<Block> block = pool_->take(bytes);
    if (!block) return std::unexpected(std::move(block).error());
    return std::make_shared<CpuStorage>(pool_, *block, bytes);
  }

  Result<Fence> submit(std::vector<Owner> uses, std::vector<Fence> after, Job job) override {
    if (!job) return fail(ErrorKind::kInvalidArgument, "cpu: submit: there is no job");
    Result<void> outcome = outcome_of(after);
    if (outcome) outcome = run_job(job, CpuAccess());
    uses.clear();
    if (outcome) return Fence();
    FenceSource failed;
    failed.signal(std::move(outcome));
    return failed.fence();
  }

  Result<Fence> copy(StorageRegion destination, StorageRegion source,
                     std::vector<Fence> after) override {
    PENSTOCK_TRY(check_copy(destination, source, kCpu));
    return submit({destination.storage, source.storage}, std::move(after),
                  [&](const Access& access) -> Result<void> {
                    const auto from = access.bytes(source);
                    std::memmove(access.bytes(destination).data(), from.data(), from.size());
                    ledger_.record(CopyClass::kTensor, "memory/copy", from.size());
                    return {};
                  });
  }

  Result<void> read_back(std::span<std::byte> destination, StorageRegion source,
                         const std::vector<Fence>& after, TransferPurpose purpose) override {
    PENSTOCK_TRY(check_transfer(source, destination.size(), purpose, kCpu, "read-back"));
    PENSTOCK_TRY(outcome_of(after));
    const auto from = CpuAccess().Access::bytes(source);
    std::memmove(destination.data(), from.data(), from.size());
    ledger_.record(CopyClass::kReadback, transfer_site(purpose), from.size());
    return {};
  }

  Result<void> upload(StorageRegion destination, std::span<const std::byte> source,
                      TransferPurpose purpose) override {
    PENSTOCK_TRY(check_transfer(destination, source.size(), purpose, kCpu, "upload"));
    const auto to = CpuAccess().Access::bytes(destination);
    std::memmove(to.data(), source.data(), source.size());
    ledger_.record(CopyClass::kUpload, transfer_site(purpose), source.size());
    return {};
  }

  CopyLedger& ledger() override { return ledger_; }

 private:
  const std::shared_ptr<BlockPool> pool_;
  CopyLedger ledger_;
};

}  // namespace

DevicePtr make_cpu_device(const DeviceOptions& options) {
  return std::make_shared<CpuDevice>(options);
}

}  // namespace penstock
