// SPDX-License-Identifier: Apache-2.0
//
// The audit's view: this program defines the copy symbols itself, as a preloaded library would, and
// so sees every byte that `sim` moves for its callers.
#include "penstock/memory/sim/sim_copy.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <vector>

#include "penstock/memory/sim/sim_device.h"

namespace {

struct Trap {
  std::atomic<std::size_t> calls = 0;
  std::atomic<std::size_t> bytes = 0;

  void pass_on(const char* symbol, void* destination, const void* source, std::size_t size) {
    ++calls;
    bytes += size;
    using Copy = void (*)(void*, const void*, std::size_t);
    const auto real = reinterpret_cast<Copy>(::dlsym(RTLD_NEXT, symbol));
    ASSERT_NE(real, nullptr) << symbol << " is not exported by a shared library";
    real(destination, source, size);
  }
};

Trap to_host;
Trap to_device;
Trap on_device;

}  // namespace

#define PENSTOCK_TRAP extern "C" __attribute__((visibility("default")))

PENSTOCK_TRAP void penstock_sim_copy_to_host(void* destination, const void* source, size_t size) {
  to_host.pass_on("penstock_sim_copy_to_host", destination, source, size);
}
PENSTOCK_TRAP void penstock_sim_copy_to_device(void* destination, const void* source, size_t size) {
  to_device.pass_on("penstock_sim_copy_to_device", destination, source, size);
}
PENSTOCK_TRAP void penstock_sim_copy_device(void* destination, const void* source, size_t size) {
  on_device.pass_on("penstock_sim_copy_device", destination, source, size);
}

namespace penstock {
namespace {

TEST(SimCopy, GivenTrappedSymbols_WhenTheDeviceCopies_ThenEveryByteIsSeenAndArrives) {
  const auto device = SimDevice::create();
  const StoragePtr first = *device->allocate(1000);
  const StoragePtr second = *device->allocate(1000);
  const std::vector<std::byte> content(1000, std::byte{0x21});
  ASSERT_TRUE(device->upload(StorageRegion::whole(first), content, TransferPurpose::kMetadata));
  const auto copied = device->copy(StorageRegion::whole(second), StorageRegion::whole(first), {});
  ASSERT_TRUE(copied);
  std::vector<std::byte> back(600);
  ASSERT_TRUE(device->read_back(back, {second, 400, 600}, {*copied}, TransferPurpose::kMetadata));
  EXPECT_EQ(back, std::vector<std::byte>(600, std::byte{0x21}));
  EXPECT_EQ(to_device.calls, 1u);
  EXPECT_EQ(to_device.bytes, 1000u);
  EXPECT_EQ(on_device.calls, 1u);
  EXPECT_EQ(on_device.bytes, 1000u);
  EXPECT_EQ(to_host.calls, 1u);
  EXPECT_EQ(to_host.bytes, 600u);
}

}  // namespace
}  // namespace penstock
