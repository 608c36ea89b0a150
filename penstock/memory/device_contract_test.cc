// SPDX-License-Identifier: Apache-2.0
//
// What every Device promises, whatever it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "penstock/memory/testing/devices.h"

namespace penstock {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr std::byte kA{0x5a};
constexpr std::byte kB{0xc3};

// `count` bytes that differ from their neighbours.
std::vector<std::byte> pattern(std::size_t count, unsigned seed = 0) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251 + seed);
  return bytes;
}

class DeviceTest : public testing::TestWithParam<TestDevice> {
 protected:
  static DevicePtr open(const DeviceOptions& options = {}) { return GetParam().open(options); }

  StoragePtr allocate(std::size_t bytes) {
    auto storage = device_->allocate(bytes);
    EXPECT_TRUE(storage) << storage.error().message();
    return *storage;
  }
  StoragePtr upload(const std::vector<std::byte>& bytes) {
    StoragePtr storage = allocate(bytes.size());
    EXPECT_TRUE(
        device_->upload(StorageRegion::whole(storage), bytes, TransferPurpose::kTestContent));
    return storage;
  }
  std::vector<std::byte> read(const StoragePtr& storage, const std::vector<Fence>& after = {}) {
    std::vector<std::byte> bytes(storage->size());
    const auto result = device_->read_back(bytes, StorageRegion::whole(storage), after,
                                           TransferPurpose::kTestContent);
    EXPECT_TRUE(result) << result.error().message();
    return bytes;
  }
  Fence fill(const StoragePtr& storage, std::byte value, std::vector<Fence> after = {}) {
    auto fence = device_->submit({storage}, std::move(after),
                                 [storage = storage.get(), value](const Access& access) {
                                   std::ranges::fill(access.bytes(*storage), value);
                                   return Result<void>();
                                 });
    EXPECT_TRUE(fence);
    return *fence;
  }
  Fence failed(std::string message) {
    FenceSource source;
    source.signal(fail(ErrorKind::kDevice, std::move(message)));
    return source.fence();
  }

  DevicePtr device_ = open();
};

class DeviceContract : public DeviceTest {};

TEST_P(DeviceContract, GivenSizes_WhenAllocated_ThenStorageIsAlignedAndOfThatSize) {
  for (const std::size_t size : {0, 1, 63, 64, 4097, 660000}) {
    const StoragePtr storage = allocate(size);
    EXPECT_EQ(storage->size(), size);
    EXPECT_EQ(storage->device(), device_->id());
    EXPECT_EQ(storage->address() % 64, 0u);
  }
}

TEST_P(DeviceContract, GivenLiveStorages_WhenMoreAreAllocated_ThenNoneOverlap) {
  std::vector<StoragePtr> storages;
  for (int i = 0; i < 20; ++i) storages.push_back(allocate(1000));
  std::ranges::sort(storages, {}, [](const StoragePtr& s) { return s->address(); });
  for (std::size_t i = 1; i < storages.size(); ++i) {
    EXPECT_LE(storages[i - 1]->address() + 1000, storages[i]->address());
  }
}

TEST_P(DeviceContract, GivenAJob_WhenItsFencePassed_ThenItsWritesAreSeen) {
  const StoragePtr storage = allocate(5000);
  const Fence fence = fill(storage, kA);
  EXPECT_TRUE(fence.wait());
  EXPECT_THAT(read(storage), Each(kA));
}

TEST_P(DeviceContract, GivenARegion_WhenAccessed_ThenItsBytesAreThoseOfTheStorageAtItsOffset) {
  const StoragePtr storage = upload(pattern(300));
  std::vector<std::byte> seen;
  const auto fence = device_->submit({storage}, {}, [&](const Access& access) -> Result<void> {
    const auto bytes = access.bytes(StorageRegion{storage, 100, 20});
    seen.assign(bytes.begin(), bytes.end());
    return {};
  });
  ASSERT_TRUE(fence->wait());
  const auto whole = pattern(300);
  EXPECT_EQ(seen, std::vector(whole.begin() + 100, whole.begin() + 120));
}

TEST_P(DeviceContract, GivenAChainOfFences_WhenRun_ThenJobsRunInItsOrder) {
  std::vector<int> order;
  Fence previous;
  for (int i = 0; i < 50; ++i) {
    previous = *device_->submit({}, {previous}, [&order, i](const Access&) {
      order.push_back(i);
      return Result<void>();
    });
  }
  ASSERT_TRUE(previous.wait());
  std::vector<int> expected(50);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TEST_P(DeviceContract, GivenAFailedFence_WhenWorkComesAfterIt_ThenItFailsWithoutRunning) {
  bool has_run = false;
  const auto second = device_->submit({}, {Fence(), failed("decode failed")}, [&](const Access&) {
    has_run = true;
    return Result<void>();
  });
  ASSERT_TRUE(second);
  const StoragePtr storage = upload(pattern(16));
  const auto third =
      device_->copy(StorageRegion::whole(allocate(16)), StorageRegion::whole(storage), {*second});
  ASSERT_TRUE(third);
  std::vector<std::byte> bytes(16, kB);
  const auto read = device_->read_back(bytes, StorageRegion::whole(storage), {*third},
                                       TransferPurpose::kMetadata);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind(), ErrorKind::kDevice);
  EXPECT_THAT(read.error().message(), HasSubstr("decode failed"));
  EXPECT_FALSE(second->wait());
  EXPECT_FALSE(third->wait());
  EXPECT_FALSE(has_run);
  EXPECT_THAT(bytes, Each(kB));
  EXPECT_EQ(device_->ledger().count(CopyClass::kTensor), 0u);
}

TEST_P(DeviceContract, GivenAJobThatFails_WhenWaitedFor_ThenTheFenceCarriesItsError) {
  const auto fence = device_->submit({}, {}, [](const Access&) -> Result<void> {
    return fail(ErrorKind::kUnsupported, "no such kernel");
  });
  const auto outcome = fence->wait();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind(), ErrorKind::kUnsupported);
  EXPECT_EQ(outcome.error().message(), "no such kernel");
}

TEST_P(DeviceContract, GivenAJobThatThrows_WhenWaitedFor_ThenTheFenceCarriesAnError) {
  const auto fence = device_->submit(
      {}, {}, [](const Access&) -> Result<void> { throw std::runtime_error("vendor trouble"); });
  const auto outcome = fence->wait();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind(), ErrorKind::kInternal);
  EXPECT_THAT(outcome.error().message(), HasSubstr("vendor trouble"));
}

TEST_P(DeviceContract, GivenNoJob_WhenSubmitted_ThenItIsRefused) {
  const auto fence = device_->submit({}, {}, nullptr);
  ASSERT_FALSE(fence);
  EXPECT_EQ(fence.error().kind(), ErrorKind::kInvalidArgument);
}

TEST_P(DeviceContract, GivenUses_WhenTheFenceHasPassed_ThenTheyAreReleased) {
  auto owner = std::make_shared<int>(1);
  auto captured = std::make_shared<int>(2);
  const std::weak_ptr<int> watched_owner = owner;
  const std::weak_ptr<int> watched_capture = captured;
  const auto fence = device_->submit({std::move(owner)}, {},
                                     [kept = std::move(captured), &watched_owner](const Access&) {
                                       EXPECT_FALSE(watched_owner.expired());
                                       EXPECT_EQ(*kept, 2);
                                       return Result<void>();
                                     });
  ASSERT_TRUE(fence->wait());
  EXPECT_TRUE(watched_owner.expired());
  EXPECT_TRUE(watched_capture.expired());
}

TEST_P(DeviceContract, GivenRegions_WhenCopied_ThenOnlyTheDestinationRegionChanges) {
  const StoragePtr source = upload(pattern(100));
  const StoragePtr destination = upload(std::vector<std::byte>(50, kB));
  const auto fence = device_->copy({destination, 10, 20}, {source, 70, 20}, {});
  ASSERT_TRUE(fence);
  const auto bytes = read(destination, {*fence});
  auto expected = std::vector<std::byte>(50, kB);
  std::copy_n(pattern(100).begin() + 70, 20, expected.begin() + 10);
  EXPECT_EQ(bytes, expected);
  EXPECT_EQ(device_->ledger().count(CopyClass::kTensor), 1u);
  EXPECT_EQ(device_->ledger().bytes(CopyClass::kTensor), 20u);
}

TEST_P(DeviceContract, GivenAFenceBeforeACopy_WhenCopied_ThenTheSourceIsReadAfterIt) {
  const StoragePtr source = upload(std::vector<std::byte>(64, kA));
  const StoragePtr destination = allocate(64);
  const Fence written = fill(source, kB);
  const auto fence =
      device_->copy(StorageRegion::whole(destination), StorageRegion::whole(source), {written});
  EXPECT_THAT(read(destination, {*fence}), Each(kB));
}

TEST_P(DeviceContract, GivenBadRegions_WhenCopied_ThenRefusedAndNothingIsRecorded) {
  const StoragePtr a = allocate(64);
  const StoragePtr b = allocate(64);
  for (const auto& [to, from] : {std::pair<StorageRegion, StorageRegion>{{a, 0, 64}, {b, 0, 63}},
                                 {{a, 1, 64}, {b, 0, 64}},
                                 {{a, 0, 64}, {b, 1, 64}},
                                 {{nullptr, 0, 0}, {b, 0, 0}},
                                 {{a, 0, 0}, {nullptr, 0, 0}}}) {
    const auto refused = device_->copy(to, from, {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind(), ErrorKind::kInvalidArgument);
  }
  EXPECT_TRUE(device_->ledger().rows().empty());
}

TEST_P(DeviceContract, GivenContent_WhenUploadedAndReadBack_ThenItIsTheSameAndRecorded) {
  const auto content = pattern(700000, 3);
  EXPECT_EQ(read(upload(content)), content);
  EXPECT_EQ(device_->ledger().bytes(CopyClass::kUpload), 700000u);
  EXPECT_EQ(device_->ledger().bytes(CopyClass::kReadback), 700000u);
  EXPECT_EQ(device_->ledger().count(CopyClass::kFrame), 0u);
}

TEST_P(DeviceContract, GivenAFullBudget_WhenAllocating_ThenExhaustedUntilSomethingIsFreed) {
  device_ = open({.memory_budget = 1 << 20, .pool_limit = 1 << 20});
  StoragePtr first = allocate(512 << 10);
  StoragePtr second = allocate(512 << 10);
  const auto refused = device_->allocate(1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::kExhausted);
  EXPECT_THAT(refused.error().message(), HasSubstr("1048576"));
  EXPECT_THAT(refused.error().message(), HasSubstr(GetParam().name));
  first.reset();
  second.reset();
  // The pool makes room for another size.
  EXPECT_TRUE(device_->allocate(1 << 20));
}

TEST_P(DeviceContract, GivenAFenceThatPassed_WhenItsUsesAreFreed_ThenTheirBudgetIsThere) {
  device_ = open({.memory_budget = 64 << 10, .pool_limit = 64 << 10});
  for (int i = 0; i < 200; ++i) {
    auto storage = device_->allocate(64 << 10);
    ASSERT_TRUE(storage) << i << ": " << storage.error().message();
    const Fence fence = fill(*storage, kA);
    storage->reset();
    ASSERT_TRUE(fence.wait());
  }
}

TEST_P(DeviceContract, GivenAStorage_WhenItsDeviceIsGone_ThenItCanStillBeFreed) {
  StoragePtr storage = allocate(4096);
  device_.reset();
  EXPECT_EQ(storage->size(), 4096u);
  storage.reset();
}

TEST_P(DeviceContract, GivenQueuedJobs_WhenTheDeviceGoes_ThenAllHaveRunAndNothingIsHeld) {
  std::atomic<int> ran = 0;
  const auto owner = std::make_shared<int>();
  std::vector<Fence> fences;
  for (int i = 0; i < 100; ++i) {
    std::vector<Fence> after;
    if (i % 3 == 0 && i > 0) after.push_back(fences.back());
    fences.push_back(*device_->submit({owner}, std::move(after), [&](const Access&) {
      ++ran;
      return Result<void>();
    }));
  }
  device_.reset();
  EXPECT_EQ(ran, 100);
  EXPECT_EQ(owner.use_count(), 1);
  for (const Fence& fence : fences) {
    EXPECT_TRUE(fence.has_passed());
    EXPECT_TRUE(fence.wait());
  }
}

// The frame, the session, anything may hold the device: its last reference then goes on the
// device's own thread.
TEST_P(DeviceContract, GivenAJobThatHoldsTheDevice_WhenItIsTheLast_ThenTheFenceStillPasses) {
  DevicePtr device = std::move(device_);
  std::vector<Fence> fences;
  for (int i = 0; i < 10; ++i) {
    auto storage = *device->allocate(4096);
    fences.push_back(
        *device->submit({device, storage}, fences, [](const Access&) { return Result<void>(); }));
  }
  device.reset();
  for (const Fence& fence : fences) EXPECT_TRUE(fence.wait());
}

TEST_P(DeviceContract, GivenSeveralThreads_WhenTheyUseTheDevice_ThenEachSeesItsOwnBytes) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (unsigned i = 0; i < 25; ++i) {
        const auto value = static_cast<std::byte>(t * 50 + i);
        const StoragePtr source = allocate(3000);
        const StoragePtr destination = allocate(3000);
        const Fence written = fill(source, value);
        const auto copied = device_->copy(StorageRegion::whole(destination),
                                          StorageRegion::whole(source), {written});
        ASSERT_TRUE(copied);
        EXPECT_THAT(read(destination, {*copied}), Each(value));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(device_->ledger().count(CopyClass::kTensor), 100u);
}

INSTANTIATE_TEST_SUITE_P(cpu, DeviceContract, testing::Values(cpu_test_device()));
INSTANTIATE_TEST_SUITE_P(sim, DeviceContract, testing::Values(sim_test_device()));

// P03: what is read back is compact, and nothing else fits through a marked transfer.
class P03 : public DeviceTest {};

TEST_P(P03, GivenDetections_WhenReadBack_ThenTheLimitIs7204Bytes) {
  const StoragePtr storage = upload(pattern(7205));
  std::vector<std::byte> bytes(7205, kB);
  const std::span<std::byte> host(bytes);
  const auto refused =
      device_->read_back(host, {storage, 0, 7205}, {}, TransferPurpose::kDetections);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(refused.error().message(), HasSubstr("7205"));
  EXPECT_THAT(refused.error().message(), HasSubstr("7204"));
  EXPECT_THAT(bytes, Each(kB));
  EXPECT_EQ(device_->ledger().count(CopyClass::kReadback), 0u);

  ASSERT_TRUE(
      device_->read_back(host.first(7204), {storage, 1, 7204}, {}, TransferPurpose::kDetections));
  const auto expected = pattern(7205);
  EXPECT_TRUE(std::equal(expected.begin() + 1, expected.end(), bytes.begin()));
  EXPECT_EQ(bytes.back(), kB);
  EXPECT_EQ(device_->ledger().count(CopyClass::kReadback), 1u);
  EXPECT_EQ(device_->ledger().bytes(CopyClass::kReadback), 7204u);
}

TEST_P(P03, GivenMetadata_WhenTransferred_ThenTheLimitIs256KiBBothWays) {
  const std::size_t limit = 262144;
  const StoragePtr storage = allocate(limit + 1);
  std::vector<std::byte> bytes(limit + 1, kA);
  const std::span<std::byte> host(bytes);
  EXPECT_FALSE(device_->upload({storage, 0, limit + 1}, host, TransferPurpose::kMetadata));
  EXPECT_FALSE(device_->read_back(host, {storage, 0, limit + 1}, {}, TransferPurpose::kMetadata));
  EXPECT_TRUE(device_->ledger().rows().empty());
  EXPECT_TRUE(device_->upload({storage, 0, limit}, host.first(limit), TransferPurpose::kMetadata));
  std::ranges::fill(bytes, kB);
  EXPECT_TRUE(
      device_->read_back(host.first(limit), {storage, 0, limit}, {}, TransferPurpose::kMetadata));
  EXPECT_THAT(host.first(limit), Each(kA));
  EXPECT_EQ(device_->ledger().bytes(CopyClass::kUpload), limit);
  EXPECT_EQ(device_->ledger().bytes(CopyClass::kReadback), limit);
}

TEST_P(P03, GivenUnequalSizes_WhenTransferred_ThenRefused) {
  const StoragePtr storage = allocate(64);
  std::vector<std::byte> bytes(64);
  const std::span<std::byte> host(bytes);
  for (const auto purpose : {TransferPurpose::kDetections, TransferPurpose::kTestContent}) {
    EXPECT_FALSE(device_->read_back(host.first(63), {storage, 0, 64}, {}, purpose));
    EXPECT_FALSE(device_->read_back(host, {storage, 1, 64}, {}, purpose));
    EXPECT_FALSE(device_->upload({storage, 0, 63}, host, purpose));
    EXPECT_FALSE(device_->upload({storage, 32, 64}, host, purpose));
    EXPECT_FALSE(device_->upload({nullptr, 0, 0}, {}, purpose));
  }
  EXPECT_TRUE(device_->ledger().rows().empty());
}

TEST_P(P03, GivenWorkInFlight_WhenReadBack_ThenItIsWaitedFor) {
  for (int i = 0; i < 20; ++i) {
    const StoragePtr storage = upload(std::vector<std::byte>(7204, kA));
    const Fence fence = fill(storage, kB);
    std::vector<std::byte> bytes(7204);
    ASSERT_TRUE(device_->read_back(bytes, StorageRegion::whole(storage), {fence},
                                   TransferPurpose::kDetections));
    EXPECT_THAT(bytes, Each(kB));
  }
}

INSTANTIATE_TEST_SUITE_P(cpu, P03, testing::Values(cpu_test_device()));
INSTANTIATE_TEST_SUITE_P(sim, P03, testing::Values(sim_test_device()));

}  // namespace
}  // namespace penstock
