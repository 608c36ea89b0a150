// SPDX-License-Identifier: Apache-2.0
#include "penstock/memory/storage.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace penstock {
namespace {

constexpr auto kMaxSize = std::numeric_limits<std::size_t>::max();

TEST(WrapHostMemory, GivenForeignBytes_WhenWrapped_ThenTheyAreCpuStorageThatKeepsTheOwner) {
  auto owner = std::make_shared<std::array<std::byte, 100>>();
  StoragePtr storage = wrap_host_memory(*owner, owner);
  const std::weak_ptr<const void> watched = owner;
  EXPECT_EQ(storage->device(), (DeviceId{DeviceKind::kCpu, 0}));
  EXPECT_EQ(storage->size(), 100u);
  EXPECT_EQ(storage->host_bytes().data(), owner->data());
  EXPECT_EQ(storage->address(), reinterpret_cast<std::uintptr_t>(owner->data()));
  owner.reset();
  EXPECT_FALSE(watched.expired());
  storage.reset();
  EXPECT_TRUE(watched.expired());
}

TEST(StorageRegion, GivenRanges_WhenMade_ThenOnlyThoseInsideTheStorageAreAccepted) {
  std::array<std::byte, 64> bytes;
  const StoragePtr storage = wrap_host_memory(bytes, nullptr);
  EXPECT_TRUE(StorageRegion::make(storage, 0, 64));
  EXPECT_TRUE(StorageRegion::make(storage, 64, 0));
  const auto region = StorageRegion::make(storage, 60, 4);
  ASSERT_TRUE(region);
  EXPECT_EQ(region->offset, 60u);
  EXPECT_EQ(region->size, 4u);
  for (const auto& [offset, size] :
       {std::pair<std::size_t, std::size_t>{60, 5}, {65, 0}, {1, kMaxSize}, {kMaxSize, 2}}) {
    const auto refused = StorageRegion::make(storage, offset, size);
    ASSERT_FALSE(refused) << offset << ' ' << size;
    EXPECT_EQ(refused.error().kind(), ErrorKind::kInvalidArgument);
  }
  EXPECT_FALSE(StorageRegion::make(nullptr, 0, 0));
  EXPECT_EQ(StorageRegion::whole(storage).size, 64u);
}

}  // namespace
}  // namespace penstock
