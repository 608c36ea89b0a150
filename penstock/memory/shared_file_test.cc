// SPDX-License-Identifier: Apache-2.0
//
// Memory that crosses between processes (contract X03, Q04), and the `cpu` device that hands it
// out.
#include "penstock/memory/shared_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <utility>

#include "penstock/memory/device.h"

namespace penstock {
namespace {

std::shared_ptr<SharedFile> create(std::size_t size, MapAccess peers) {
  auto file = SharedFile::create(size, peers);
  EXPECT_TRUE(file) << file.error().message();
  return std::move(file).value();
}

TEST(X03_SharedFile, GivenOneToBeRead_WhenMappedByAnother_ThenItSeesWritesAndCannotWrite) {
  const auto file = create(5000, MapAccess::kRead);
  EXPECT_EQ(file->size(), 8192u);
  auto theirs = file->duplicate();
  ASSERT_TRUE(theirs);
  auto mapped = SharedMapping::map(*theirs, 8192, MapAccess::kRead);
  ASSERT_TRUE(mapped);
  file->bytes()[4999] = std::byte{42};
  EXPECT_EQ(mapped->data()[4999], std::byte{42});

  EXPECT_FALSE(SharedMapping::map(*theirs, 8192, MapAccess::kReadWrite));
  EXPECT_NE(::ftruncate(theirs->get(), 0), 0);
  EXPECT_NE(::fallocate(theirs->get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
  EXPECT_TRUE(file->duplicate()) << "any number of processes may have it";
}

TEST(X03_SharedFile, GivenOneToBeWritten_WhenTheOtherHasSealedIt_ThenItSettlesAndGoesToNobodyElse) {
  const auto file = create(4096, MapAccess::kReadWrite);
  auto theirs = file->duplicate();
  ASSERT_TRUE(theirs);
  auto mapped = SharedMapping::map(*theirs, 4096, MapAccess::kReadWrite);
  ASSERT_TRUE(mapped);
  ASSERT_TRUE(seal_writers(*theirs));
  ASSERT_TRUE(file->settle());
  mapped->data()[7] = std::byte{9};
  EXPECT_EQ(file->bytes()[7], std::byte{9});
  const auto again = file->duplicate();
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind(), ErrorKind::kUnsupported);
}

TEST(Q04_SharedFile, GivenAPeerThatDoesNotSeal_WhenSettled_ThenItIsRefused) {
  const auto file = create(4096, MapAccess::kReadWrite);
  auto theirs = file->duplicate();
  ASSERT_TRUE(theirs);
  ASSERT_EQ(::fallocate(theirs->get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
  const auto settled = file->settle();
  ASSERT_FALSE(settled);
  EXPECT_EQ(settled.error().kind(), ErrorKind::kCorrupt);
}

TEST(X03_SharedFile, GivenOnesThatWantToKnow_WhenItGoes_ThenEachIsToldOnce) {
  auto file = create(1, MapAccess::kRead);
  int told = 0;
  file->when_gone([&] { ++told; });
  file->when_gone([&] { told += 10; });
  EXPECT_EQ(told, 0);
  file.reset();
  EXPECT_EQ(told, 11);
}

TEST(X03_SharedFile, GivenNoSize_WhenCreated_ThenItIsAnError) {
  EXPECT_FALSE(SharedFile::create(0, MapAccess::kRead));
  EXPECT_FALSE(SharedFile::create(~std::size_t{0}, MapAccess::kRead));
}

TEST(X03_SharedDevice, GivenAShareableDevice_WhenAllocated_ThenOthersReadTheBytes) {
  auto device = open_device({DeviceKind::kCpu, 0}, {.shareable = true});
  ASSERT_TRUE(device);
  auto storage = (*device)->allocate(1000);
  ASSERT_TRUE(storage);
  const auto file = (*storage)->shared_file();
  ASSERT_NE(file, nullptr);
  std::memset((*storage)->host_bytes().data(), 0x5a, 1000);
  auto theirs = file->duplicate();
  ASSERT_TRUE(theirs);
  auto mapped = SharedMapping::map(*theirs, 1000, MapAccess::kRead);
  ASSERT_TRUE(mapped);
  EXPECT_EQ(mapped->data()[999], std::byte{0x5a});
}

TEST(X03_SharedDevice, GivenAStorageThatCameBack_WhenAllocatedAgain_ThenItIsTheSameFile) {
  auto device = open_device({DeviceKind::kCpu, 0}, {.shareable = true});
  ASSERT_TRUE(device);
  const SharedFile* first = nullptr;
  {
    auto storage = (*device)->allocate(100'000);
    ASSERT_TRUE(storage);
    first = (*storage)->shared_file().get();
  }
  auto again = (*device)->allocate(100'000);
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)->shared_file().get(), first) << "a new one would have to cross again";
}

TEST(X03_SharedDevice, GivenTheDeviceAndAllStoragesGone_WhenNobodyHoldsTheFile_ThenItGoesToo) {
  std::weak_ptr<SharedFile> watched;
  {
    auto device = open_device({DeviceKind::kCpu, 0}, {.shareable = true});
    ASSERT_TRUE(device);
    auto storage = (*device)->allocate(100);
    ASSERT_TRUE(storage);
    watched = (*storage)->shared_file();
    storage->reset();
    EXPECT_FALSE(watched.expired()) << "pooled";
  }
  EXPECT_TRUE(watched.expired());
}

TEST(X03_SharedDevice, GivenAnOrdinaryDevice_WhenAllocated_ThenNobodyElseCanMapIt) {
  auto device = open_device({DeviceKind::kCpu, 0});
  ASSERT_TRUE(device);
  auto storage = (*device)->allocate(100);
  ASSERT_TRUE(storage);
  EXPECT_EQ((*storage)->shared_file(), nullptr);
}

}  // namespace
}  // namespace penstock
