// SPDX-License-Identifier: Apache-2.0
#include "penstock/memory/sim/sim_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "penstock/memory/cpu/cpu_device.h"

namespace penstock {
namespace {

using testing::Each;
using testing::HasSubstr;

Result<void> nothing(const Access&) { return {}; }

std::ptrdiff_t open_fds() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

StoragePtr allocate(SimDevice& device, std::size_t bytes) {
  auto storage = device.allocate(bytes);
  EXPECT_TRUE(storage) << storage.error().message();
  return *storage;
}

// The storage's bytes as a job sees them.
std::vector<std::byte> bytes_of(SimDevice& device, const StoragePtr& storage) {
  std::vector<std::byte> seen;
  const auto fence = device.submit({storage}, {}, [&](const Access& access) -> Result<void> {
    const auto bytes = access.bytes(*storage);
    seen.assign(bytes.begin(), bytes.end());
    return {};
  });
  EXPECT_TRUE(fence->wait());
  return seen;
}

Fence fill(SimDevice& device, const StoragePtr& storage, std::byte value) {
  return *device.submit({storage}, {},
                        [target = storage.get(), value](const Access& access) -> Result<void> {
                          std::ranges::fill(access.bytes(*target), value);
                          return {};
                        });
}

TEST(SimDevice, GivenStorage_WhenAskedForHostBytes_ThenThereAreNone) {
  const auto device = SimDevice::create();
  EXPECT_EQ(device->id(), (DeviceId{DeviceKind::kSim, 0}));
  EXPECT_TRUE(allocate(*device, 100)->host_bytes().empty());
}

TEST(SimDevice, GivenFreshAndReusedStorage_WhenReadByAJob_ThenItIsPoisoned) {
  const auto device = SimDevice::create();
  StoragePtr first = allocate(*device, 10000);
  EXPECT_THAT(bytes_of(*device, first), Each(std::byte{0xdb}));
  ASSERT_TRUE(fill(*device, first, std::byte{1}).wait());
  const auto address = first->address();
  first.reset();
  const StoragePtr second = allocate(*device, 10000);
  ASSERT_EQ(second->address(), address);
  EXPECT_THAT(bytes_of(*device, second), Each(std::byte{0xdb}));
}

TEST(SimDevice, GivenABytePointerKeptFromAJob_WhenTheStorageIsFreed_ThenItSeesPoison) {
  const auto device = SimDevice::create();
  StoragePtr storage = allocate(*device, 4096);
  std::span<std::byte> kept;
  ASSERT_TRUE(device
                  ->submit({storage}, {},
                           [&](const Access& access) -> Result<void> {
                             kept = access.bytes(*storage);
                             std::ranges::fill(kept, std::byte{7});
                             return {};
                           })
                  ->wait());
  EXPECT_THAT(kept, Each(std::byte{7}));
  storage.reset();
  EXPECT_THAT(kept, Each(std::byte{0xdb}));
}

TEST(SimDevice, GivenHeldJobs_WhenSubmitted_ThenTheirFencesStayOpenUntilReleased) {
  const auto device = SimDevice::create({.hold_jobs = true});
  std::vector<Fence> fences;
  for (int i = 0; i < 5; ++i) fences.push_back(*device->submit({}, {}, nothing));
  EXPECT_EQ(device->jobs_pending(), 5u);
  for (const Fence& fence : fences) EXPECT_FALSE(fence.has_passed());
  device->hold_jobs(false);
  for (const Fence& fence : fences) EXPECT_TRUE(fence.wait());
  EXPECT_EQ(device->jobs_pending(), 0u);
  device->wait_idle();
}

std::vector<int> run_order(const SimOptions& options, int count) {
  std::mutex mutex;
  std::vector<int> order;
  {
    const auto device = SimDevice::create(options);
    device->hold_jobs(true);
    for (int i = 0; i < count; ++i) {
      EXPECT_TRUE(device->submit({}, {}, [&, i](const Access&) -> Result<void> {
        const std::lock_guard lock(mutex);
        order.push_back(i);
        return {};
      }));
    }
    device->hold_jobs(false);
    device->wait_idle();
  }
  return order;
}

TEST(SimDevice, GivenIndependentJobs_WhenRun_ThenAllRunOnceAndOutOfStep) {
  auto order = run_order({.queues = 2, .seed = 11}, 64);
  EXPECT_FALSE(std::ranges::is_sorted(order));
  std::ranges::sort(order);
  std::vector<int> all(64);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(order, all);
}

TEST(SimDevice, GivenAFenceThatIsStillOpen_WhenAJobWaitsForIt_ThenOthersRun) {
  const auto device = SimDevice::create({.queues = 1});
  std::optional<FenceSource> elsewhere(std::in_place);
  bool has_run = false;
  const auto waiting = device->submit({}, {elsewhere->fence()}, [&](const Access&) -> Result<void> {
    has_run = true;
    return {};
  });
  EXPECT_TRUE(device->submit({}, {}, nothing)->wait());
  EXPECT_FALSE(waiting->has_passed());
  EXPECT_FALSE(has_run);
  elsewhere->signal();
  EXPECT_TRUE(waiting->wait());
  EXPECT_TRUE(has_run);
}

TEST(SimDevice, GivenAJobAfterAFenceFromElsewhere_WhenTheDeviceGoes_ThenItIsCancelled) {
  auto device = SimDevice::create();
  FenceSource elsewhere;
  const auto owner = std::make_shared<int>();
  bool has_run = false;
  const auto waiting =
      device->submit({owner}, {elsewhere.fence()}, [&](const Access&) -> Result<void> {
        has_run = true;
        return {};
      });
  const auto dependent = device->submit({owner}, {*waiting}, nothing);
  device.reset();
  EXPECT_EQ(owner.use_count(), 1);
  ASSERT_TRUE(waiting->has_passed());
  EXPECT_EQ(waiting->wait().error().kind(), ErrorKind::kCancelled);
  EXPECT_EQ(dependent->wait().error().kind(), ErrorKind::kCancelled);
  elsewhere.signal();
  EXPECT_FALSE(has_run);
}

TEST(SimDevice, GivenHeldJobs_WhenTheDeviceGoes_ThenTheyRunFirst) {
  auto device = SimDevice::create({.hold_jobs = true});
  const StoragePtr storage = allocate(*device, 64);
  const Fence fence = fill(*device, storage, std::byte{1});
  device.reset();
  EXPECT_TRUE(fence.has_passed());
  EXPECT_TRUE(fence.wait());
}

TEST(SimDevice, GivenAJob_WhenItAsksForABlockingTransfer_ThenItIsRefused) {
  const auto device = SimDevice::create({.queues = 1});
  const StoragePtr storage = allocate(*device, 16);
  Result<void> inner;
  ASSERT_TRUE(device
                  ->submit({storage}, {},
                           [&](const Access&) -> Result<void> {
                             std::byte byte{};
                             inner = device->read_back({&byte, 1}, {storage, 0, 1}, {},
                                                       TransferPurpose::kMetadata);
                             return {};
                           })
                  ->wait());
  ASSERT_FALSE(inner);
  EXPECT_EQ(inner.error().kind(), ErrorKind::kInvalidArgument);
}

TEST(SimDevice, GivenStorageOfOtherDevices_WhenTransferred_ThenRefused) {
  const auto device = SimDevice::create();
  const auto twin = SimDevice::create();
  const auto cpu = make_cpu_device();
  const StorageRegion own = StorageRegion::whole(allocate(*device, 16));
  std::vector<std::byte> host(16);
  for (const StoragePtr& foreign : {allocate(*twin, 16), *cpu->allocate(16)}) {
    const StorageRegion other = StorageRegion::whole(foreign);
    EXPECT_FALSE(device->copy(own, other, {}));
    EXPECT_FALSE(device->copy(other, own, {}));
    EXPECT_FALSE(device->read_back(host, other, {}, TransferPurpose::kMetadata));
    EXPECT_FALSE(device->upload(other, host, TransferPurpose::kMetadata));
  }
  EXPECT_FALSE(cpu->copy(StorageRegion::whole(*cpu->allocate(16)), own, {}));
  EXPECT_FALSE(cpu->read_back(host, own, {}, TransferPurpose::kMetadata));
  EXPECT_TRUE(device->ledger().rows().empty());
}

// Five calls, one of each kind.
Result<void> one_of_each(SimDevice& device) {
  auto storage = device.allocate(64);
  if (!storage) return std::unexpected(storage.error());
  std::vector<std::byte> host(32, std::byte{5});
  PENSTOCK_TRY(device.upload({*storage, 0, 32}, host, TransferPurpose::kMetadata));
  const auto job = device.submit({*storage}, {}, nothing);
  if (!job) return std::unexpected(job.error());
  const auto copied = device.copy({*storage, 32, 32}, {*storage, 0, 32}, {*job});
  if (!copied) return std::unexpected(copied.error());
  return device.read_back(host, {*storage, 32, 32}, {*copied}, TransferPurpose::kMetadata);
}

TEST(SimDevice, GivenEachCall_WhenItIsToldToFail_ThenItAloneFailsAndNothingLeaks) {
  const auto healthy = SimDevice::create();
  ASSERT_TRUE(one_of_each(*healthy));
  ASSERT_EQ(healthy->calls(), 5u);
  const char* const names[] = {"allocate", "upload", "submit", "copy", "read_back"};
  for (std::uint64_t n = 1; n <= 5; ++n) {
    const auto device = SimDevice::create({.fail_call = n});
    const auto result = one_of_each(*device);
    ASSERT_FALSE(result) << n;
    EXPECT_EQ(result.error().kind(), ErrorKind::kDevice);
    EXPECT_THAT(result.error().message(), HasSubstr(names[n - 1]));
    EXPECT_EQ(device->calls(), n);
    device->wait_idle();
    EXPECT_EQ(device->live_storages(), 0u);
    EXPECT_TRUE(one_of_each(*device)) << "only the n-th call fails";
    device->fail_call(device->calls() + 1);
    EXPECT_FALSE(device->allocate(1));
  }
}

TEST(SimDevice, GivenManyStorages_WhenAllocatedAndFreed_ThenNoDescriptorStaysOpen) {
  const std::ptrdiff_t before = open_fds();
  {
    const auto device = SimDevice::create({.device = {.pool_limit = 0}});
    std::vector<StoragePtr> storages;
    for (int i = 0; i < 200; ++i) storages.push_back(allocate(*device, 4096));
    EXPECT_EQ(open_fds(), before);
    EXPECT_EQ(device->live_storages(), 200u);
    storages.clear();
    EXPECT_EQ(device->live_storages(), 0u);
  }
  EXPECT_EQ(open_fds(), before);
}

TEST(SimDevice, GivenRandomMoments_WhenTornDown_ThenEveryOwnerIsReleased) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const auto owner = std::make_shared<int>();
    std::vector<Fence> fences;
    FenceSource elsewhere;
    {
      const auto device = SimDevice::create({.queues = 3, .seed = seed});
      for (std::uint64_t i = 0; i < seed % 17; ++i) {
        const StoragePtr storage = allocate(*device, 4096);
        std::vector<Fence> after;
        if (i % 2 == 1) after.push_back(fences.back());
        if (i % 5 == 4) after.push_back(elsewhere.fence());
        fences.push_back(*device->submit({owner, storage}, std::move(after), nothing));
      }
      if (seed % 3 == 0) elsewhere.signal();
    }
    EXPECT_EQ(owner.use_count(), 1);
    for (const Fence& fence : fences) EXPECT_TRUE(fence.has_passed());
  }
}

TEST(SimDevice, GivenAFenceSignalledDuringTearDown_WhenTheyRace_ThenTheJobRunsOrIsCancelled) {
  for (int i = 0; i < 200; ++i) {
    auto device = SimDevice::create({.max_delay = Nanoseconds(0)});
    FenceSource elsewhere;
    const auto fence = *device->submit({}, {elsewhere.fence()}, nothing);
    std::thread signaller([&] { elsewhere.signal(); });
    device.reset();
    signaller.join();
    ASSERT_TRUE(fence.has_passed());
    const auto outcome = fence.wait();
    EXPECT_TRUE(outcome || outcome.error().kind() == ErrorKind::kCancelled);
  }
}

// V16: what a submitted job uses lives until its fence, and later work never overwrites it.
class V16 : public testing::TestWithParam<const char*> {};

TEST_P(V16, GivenAHeldJob_WhenItsCallerLetsGo_ThenItsFrameAndTensorLiveUntilTheFence) {
  const auto device = SimDevice::create({.hold_jobs = true});
  auto frame = std::make_shared<int>(42);
  const std::weak_ptr<int> watched = frame;
  StoragePtr tensor = allocate(*device, 4096);
  const Fence fence = *device->submit(
      {frame, tensor}, {},
      [frame = frame.get(), tensor = tensor.get()](const Access& access) -> Result<void> {
        std::ranges::fill(access.bytes(*tensor), static_cast<std::byte>(*frame));
        return {};
      });
  frame.reset();
  tensor.reset();
  EXPECT_FALSE(watched.expired());
  EXPECT_EQ(device->live_storages(), 1u);
  EXPECT_FALSE(fence.has_passed());
  device->hold_jobs(false);
  EXPECT_TRUE(fence.wait());
  EXPECT_TRUE(watched.expired());
  EXPECT_EQ(device->live_storages(), 0u);
}

TEST_P(V16, GivenQueuedInputs_WhenMorePreprocessingIsSubmitted_ThenNoneIsOverwritten) {
  constexpr int kInputs = 24;
  const auto device = SimDevice::create({.queues = 3, .hold_jobs = true});
  std::vector<std::vector<std::byte>> seen(kInputs);
  std::vector<Fence> fences;
  for (int i = 0; i < kInputs; ++i) {
    // The producer lets go of each input as soon as its consumer is queued.
    const StoragePtr input = allocate(*device, 4096);
    const Fence written = fill(*device, input, static_cast<std::byte>(i));
    fences.push_back(*device->submit(
        {input}, {written},
        [input = input.get(), &out = seen[i]](const Access& access) -> Result<void> {
          const auto bytes = access.bytes(*input);
          out.assign(bytes.begin(), bytes.end());
          return {};
        }));
  }
  EXPECT_EQ(device->live_storages(), static_cast<std::uint64_t>(kInputs));
  device->hold_jobs(false);
  for (int i = 0; i < kInputs; ++i) {
    ASSERT_TRUE(fences[i].wait());
    EXPECT_THAT(seen[i], Each(static_cast<std::byte>(i)));
  }
}

TEST_P(V16, GivenQueuedTransfers_WhenTheirStorageIsLetGo_ThenItLivesUntilTheyEnd) {
  const auto device = SimDevice::create();
  const StoragePtr destination = allocate(*device, 4096);
  StoragePtr source = allocate(*device, 4096);
  ASSERT_TRUE(fill(*device, source, std::byte{9}).wait());
  device->hold_jobs(true);
  const Fence copied =
      *device->copy(StorageRegion::whole(destination), StorageRegion::whole(source), {});
  source.reset();
  EXPECT_EQ(device->live_storages(), 2u);
  device->hold_jobs(false);
  ASSERT_TRUE(copied.wait());
  EXPECT_EQ(device->live_storages(), 1u);
  EXPECT_THAT(bytes_of(*device, destination), Each(std::byte{9}));
}

INSTANTIATE_TEST_SUITE_P(sim, V16, testing::Values("sim"));

// Accepts a fault, reported by the kernel or by a sanitizer's handler, and no ordinary exit.
bool died_of_a_fault(int status) {
  return (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) ||
         (WIFEXITED(status) && WEXITSTATUS(status) != 0);
}

class SimDeviceDeathTest : public testing::Test {
 protected:
  SimDeviceDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(SimDeviceDeathTest, GivenAnAddress_WhenTheHostReadsIt_ThenItFaults) {
  const auto device = SimDevice::create();
  const StoragePtr storage = allocate(*device, 4096);
  EXPECT_EXIT(
      {
        std::fputs("reading", stderr);
        const auto* address = reinterpret_cast<const volatile unsigned char*>(storage->address());
        std::fprintf(stderr, " got %d", *address);
        std::_Exit(0);
      },
      died_of_a_fault, "reading");
}

TEST_F(SimDeviceDeathTest, GivenAnAddress_WhenTheHostWritesIt_ThenItFaults) {
  const auto device = SimDevice::create();
  const StoragePtr storage = allocate(*device, 4096);
  EXPECT_EXIT(
      {
        std::fputs("writing", stderr);
        *reinterpret_cast<volatile unsigned char*>(storage->address()) = 1;
        std::_Exit(0);
      },
      died_of_a_fault, "writing");
}

TEST_F(SimDeviceDeathTest, GivenAnotherDevicesStorage_WhenAJobAsksForIt_ThenTheProcessEnds) {
  const auto ask = [](Device& device, const StoragePtr& storage) {
    const auto fence = device.submit({storage}, {}, [&](const Access& access) -> Result<void> {
      access.bytes(*storage);
      return {};
    });
    (void)fence->wait();
    std::_Exit(0);
  };
  const auto device = SimDevice::create();
  const auto twin = SimDevice::create();
  const auto cpu = make_cpu_device();
  EXPECT_DEATH(ask(*device, *twin->allocate(16)), "a job on sim asked for storage of sim");
  EXPECT_DEATH(ask(*device, *cpu->allocate(16)), "a job on sim asked for storage of cpu");
  EXPECT_DEATH(ask(*cpu, *device->allocate(16)), "a job on cpu asked for storage of sim");
}

}  // namespace
}  // namespace penstock
