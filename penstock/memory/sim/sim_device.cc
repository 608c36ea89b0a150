// SPDX-License-Identifier: Apache-2.0
#include "penstock/memory/sim/sim_device.h"

#include <atomic>
#include <utility>

#include "penstock/base/str_format.h"
#include "penstock/memory/block_pool.h"
#include "penstock/memory/device_checks.h"
#include "penstock/memory/sim/job_queue.h"
#include "penstock/memory/sim/shadow_blocks.h"
#include "penstock/memory/sim/sim_copy.h"

namespace penstock {
namespace {

constexpr DeviceId kSim{DeviceKind::kSim, 0};

class SimStorage final : public Storage {
 public:
  SimStorage(std::shared_ptr<BlockPool> pool, const Block& block, std::size_t size)
      : pool_(std::move(pool)), block_(block), size_(size) {}
  ~SimStorage() override { pool_->give_back(block_); }

  DeviceId device() const override { return kSim; }
  std::size_t size() const override { return size_; }
  std::span<std::byte> host_bytes() override { return {}; }
  std::uintptr_t address() const override {
    return reinterpret_cast<std::uintptr_t>(block_.address);
  }

  bool is_from(const std::shared_ptr<BlockPool>& pool) const { return pool_ == pool; }
  std::span<std::byte> alias() const { return {block_.bytes, size_}; }

 private:
  const std::shared_ptr<BlockPool> pool_;
  const Block block_;
  const std::size_t size_;
};

// The only way to a storage's alias. Two sim devices of one process are told apart by their pools.
class SimAccess final : public Access {
 public:
  explicit SimAccess(std::shared_ptr<BlockPool> pool) : pool_(std::move(pool)) {}
  std::span<std::byte> bytes(const Storage& storage) const override {
    const auto* own = dynamic_cast<const SimStorage*>(&storage);
    if (own == nullptr || !own->is_from(pool_)) refuse_access(kSim, storage);
    return own->alias();
  }

 private:
  const std::shared_ptr<BlockPool> pool_;
};

class SimDeviceImpl final : public SimDevice {
 public:
  explicit SimDeviceImpl(const SimOptions& options)
      : pool_(std::make_shared<BlockPool>(kSim, std::make_unique<ShadowBlocks>(), options.device)),
        queue_(JobQueue::start({.threads = options.queues,
                                .seed = options.seed,
                                .max_delay = options.max_delay,
                                .hold = options.hold_jobs},
                               std::make_unique<SimAccess>(pool_))),
        fail_call_(options.fail_call) {}

  ~SimDeviceImpl() override {
    queue_->stop();
    pool_->close();
  }

  DeviceId id() const override { return kSim; }

  Result<StoragePtr> allocate(std::size_t bytes) override {
    PENSTOCK_TRY(count_call("allocate"));
    Result<Block> block = pool_->take(bytes);
    if (!block) return std::unexpected(std::move(block).error());
    return std::make_shared<SimStorage>(pool_, *block, bytes);
  }

  Result<Fence> submit(std::vector<Owner> uses, std::vector<Fence> after, Job job) override {
    PENSTOCK_TRY(count_call("submit"));
    if (!job) return fail(ErrorKind::kInvalidArgument, "sim: submit: there is no job");
    return queue_->submit(std::move(uses), std::move(after), std::move(job));
  }

  Result<Fence> copy(StorageRegion destination, StorageRegion source,
                     std::vector<Fence> after) override {
    PENSTOCK_TRY(count_call("copy"));
    PENSTOCK_TRY(check_copy(destination, source, kSim));
    PENSTOCK_TRY(check_own(destination, "copy"));
    PENSTOCK_TRY(check_own(source, "copy"));
    std::vector<Owner> uses{destination.storage, source.storage};
    return queue_->submit(std::move(uses), std::move(after),
                          [to = std::move(destination), from = std::move(source),
                           ledger = ledger_](const Access& access) -> Result<void> {
                            penstock_sim_copy_device(access.bytes(to).data(),
                                                     access.bytes(from).data(), from.size);
                            ledger->record(CopyClass::kTensor, "memory/copy", from.size);
                            return {};
                          });
  }

  Result<void> read_back(std::span<std::byte> destination, StorageRegion source,
                         const std::vector<Fence>& after, TransferPurpose purpose) override {
    PENSTOCK_TRY(count_call("read_back"));
    PENSTOCK_TRY(check_transfer(source, destination.size(), purpose, kSim, "read-back"));
    PENSTOCK_TRY(check_own(source, "read-back"));
    return run_now({source.storage}, after, [&](const Access& access) -> Result<void> {
      penstock_sim_copy_to_host(destination.data(), access.bytes(source).data(), source.size);
      ledger_->record(CopyClass::kReadback, transfer_site(purpose), source.size);
      return {};
    });
  }

  Result<void> upload(StorageRegion destination, std::span<const std::byte> source,
                      TransferPurpose purpose) override {
    PENSTOCK_TRY(count_call("upload"));
    PENSTOCK_TRY(check_transfer(destination, source.size(), purpose, kSim, "upload"));
    PENSTOCK_TRY(check_own(destination, "upload"));
    return run_now({destination.storage}, {}, [&](const Access& access) -> Result<void> {
      penstock_sim_copy_to_device(access.bytes(destination).data(), source.data(), source.size());
      ledger_->record(CopyClass::kUpload, transfer_site(purpose), source.size());
      return {};
    });
  }

  CopyLedger& ledger() override { return *ledger_; }

  std::uint64_t calls() const override { return calls_.load(); }
  void fail_call(std::uint64_t nth) override { fail_call_.store(nth); }
  void hold_jobs(bool hold) override { queue_->hold(hold); }
  std::uint64_t jobs_pending() const override { return queue_->pending(); }
  void wait_idle() override { queue_->wait_idle(); }
  std::uint64_t live_storages() const override { return pool_->live_blocks(); }

 private:
  Result<void> count_call(std::string_view name) {
    const std::uint64_t call = ++calls_;
    if (call == fail_call_.load()) {
      return fail(ErrorKind::kDevice,
                  str_format("sim: {} failed: call {} was told to", name, call));
    }
    return {};
  }

  Result<void> check_own(const StorageRegion& region, std::string_view what) const {
    const auto* own = dynamic_cast<const SimStorage*>(region.storage.get());
    if (own != nullptr && own->is_from(pool_)) return {};
    return fail(ErrorKind::kInvalidArgument,
                str_format("sim: {}: the storage is of another sim device", what));
  }

  Result<void> run_now(std::vector<Owner> uses, const std::vector<Fence>& after, Job job) {
    if (queue_->on_queue_thread()) {
      return fail(ErrorKind::kInvalidArgument,
                  "sim: a job asked for a blocking transfer, which could wait for itself");
    }
    return queue_->submit(std::move(uses), after, std::move(job)).wait();
  }

  const std::shared_ptr<BlockPool> pool_;
  const std::shared_ptr<JobQueue> queue_;
  // Shared with jobs, which may end after the device when one of them held its last reference.
  const std::shared_ptr<CopyLedger> ledger_ = std::make_shared<CopyLedger>();
  std::atomic<std::uint64_t> calls_ = 0;
  std::atomic<std::uint64_t> fail_call_;
};

}  // namespace

std::shared_ptr<SimDevice> SimDevice::create(const SimOptions& options) {
  return std::make_shared<SimDeviceImpl>(options);
}

}  // namespace penstock
