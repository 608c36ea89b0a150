// SPDX-License-Identifier: Apache-2.0
#include "penstock/memory/cpu/cpu_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>

namespace penstock {
namespace {

TEST(CpuDevice, GivenAJob_WhenSubmitted_ThenItHasRunOnTheCallersThread) {
  const DevicePtr device = make_cpu_device();
  std::thread::id ran_on;
  const auto fence = device->submit({}, {}, [&](const Access&) -> Result<void> {
    ran_on = std::this_thread::get_id();
    return {};
  });
  ASSERT_TRUE(fence);
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  EXPECT_TRUE(fence->has_passed());
}

TEST(CpuDevice, GivenAnOpenFence_WhenAJobIsSubmittedAfterIt_ThenSubmitWaits) {
  const DevicePtr device = make_cpu_device();
  FenceSource source;
  bool is_signalled = false;
  std::thread producer([&] {
    is_signalled = true;
    source.signal();
  });
  bool seen = false;
  const auto fence = device->submit({}, {source.fence()}, [&](const Access&) -> Result<void> {
    seen = is_signalled;
    return {};
  });
  producer.join();
  ASSERT_TRUE(fence);
  EXPECT_TRUE(seen);
}

TEST(CpuDevice, GivenStorage_WhenAccessed_ThenAccessIsTheIdentity) {
  const DevicePtr device = make_cpu_device();
  const StoragePtr own = *device->allocate(100);
  std::array<std::byte, 32> foreign{};
  const StoragePtr wrapped = wrap_host_memory(foreign, nullptr);
  const auto fence = device->submit({own, wrapped}, {}, [&](const Access& access) -> Result<void> {
    EXPECT_EQ(access.bytes(*own).data(), own->host_bytes().data());
    EXPECT_EQ(access.bytes(*own).size(), 100u);
    EXPECT_EQ(access.bytes(*wrapped).data(), foreign.data());
    return {};
  });
  ASSERT_TRUE(fence);
  EXPECT_EQ(own->address(), reinterpret_cast<std::uintptr_t>(own->host_bytes().data()));
}

#if defined(__SANITIZE_ADDRESS__)
TEST(CpuDeviceDeathTest, GivenPooledMemory_WhenUsedAfterFreeOrPastItsEnd_ThenTheSanitizerSeesIt) {
  const DevicePtr device = make_cpu_device();
  StoragePtr storage = *device->allocate(100);
  volatile std::byte* bytes = storage->host_bytes().data();
  EXPECT_DEATH(bytes[104] = std::byte{1}, "use-after-poison");
  storage.reset();
  EXPECT_DEATH(bytes[0] = std::byte{1}, "use-after-poison");
}
#elif !defined(NDEBUG)
TEST(CpuDevice, GivenFreedMemory_WhenAllocatedAgain_ThenItHoldsPoison) {
  const DevicePtr device = make_cpu_device();
  StoragePtr storage = *device->allocate(128);
  std::ranges::fill(storage->host_bytes(), std::byte{1});
  const auto address = storage->address();
  storage.reset();
  storage = *device->allocate(128);
  ASSERT_EQ(storage->address(), address);
  EXPECT_THAT(storage->host_bytes(), testing::Each(std::byte{0xdb}));
}
#endif

}  // namespace
}  // namespace penstock
