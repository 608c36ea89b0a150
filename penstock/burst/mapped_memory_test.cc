// SPDX-License-Identifier: Apache-2.0
//
// Memory of a burst that came from elsewhere: what is mapped, what is refused, what is counted
// (contract Q04, X03).
#include "penstock/burst/mapped_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace penstock {
namespace {

constexpr std::size_t kSize = 8192;

/// A memfd as an owner makes it, before anybody has sealed it against writers.
UniqueFd owned() {
  UniqueFd file(::memfd_create("pool", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(file.get(), kSize), 0);
  EXPECT_EQ(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  return file;
}

class Memory : public ::testing::Test {
 protected:
  Result<std::shared_ptr<MappedMemory>> map(const UniqueFd& file, MemoryAccess access,
                                            std::uint64_t offset = 0, std::uint64_t size = kSize) {
    return MappedMemory::map({.kind = MemoryKind::kSharedFile,
                              .access = access,
                              .offset = offset,
                              .size = size,
                              .file = UniqueFd(::dup(file.get()))},
                             *quota_);
  }
  std::shared_ptr<BurstQuota> total_ = BurstQuota::create({.slots = 3, .bytes = 10 * kSize});
  std::shared_ptr<BurstQuota> quota_ = BurstQuota::create({.slots = 2, .bytes = 2 * kSize}, total_);
};

using Q04_Memory = Memory;
using X03_Memory = Memory;

TEST_F(Q04_Memory, GivenAnInputThatOthersCanStillMapForWriting_WhenMapped_ThenItIsRefused) {
  const UniqueFd file = owned();
  const auto refused = map(file, MemoryAccess::kRead);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::kCorrupt) << refused.error().message();
  EXPECT_EQ(quota_->slots(), 0u) << "and takes nothing";
  EXPECT_EQ(total_->bytes(), 0u);
}

TEST_F(X03_Memory, GivenAnInputThatItsOwnerSealed_WhenMappedTwice_ThenBothSeeIt) {
  const UniqueFd file = owned();
  auto* const owner =
      static_cast<char*>(::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0));
  ASSERT_NE(owner, MAP_FAILED);
  ASSERT_EQ(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
  const auto one = map(file, MemoryAccess::kRead);
  const auto two = map(file, MemoryAccess::kRead, 4096, 4096);
  ASSERT_TRUE(one && two);
  owner[4097] = 'x';
  EXPECT_EQ((*one)->bytes()[4097], std::byte{'x'});
  EXPECT_EQ((*two)->bytes()[1], std::byte{'x'});
  EXPECT_EQ((*two)->bytes().size(), 4096u);
  ::munmap(owner, kSize);
}

TEST_F(Q04_Memory, GivenAnOutput_WhenMapped_ThenNobodyElseCanMapOrPunchItAnyMore) {
  const UniqueFd file = owned();
  const auto mapped = map(file, MemoryAccess::kReadWrite);
  ASSERT_TRUE(mapped) << mapped.error().message();
  EXPECT_EQ(::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0), MAP_FAILED);
  EXPECT_NE(::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
  EXPECT_FALSE(map(file, MemoryAccess::kReadWrite)) << "one burst has it";
  EXPECT_EQ(quota_->slots(), 1u);
}

TEST_F(X03_Memory, GivenQuotasWithinEachOther_WhenMemoriesComeAndGo_ThenBothCountThem) {
  auto other = BurstQuota::create({.slots = 9, .bytes = 9 * kSize}, total_);
  const auto one = quota_->take(kSize);
  auto two = quota_->take(kSize);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(quota_->take(1).error().kind(), ErrorKind::kExhausted) << "no third slot";
  const auto three = other->take(kSize);
  ASSERT_TRUE(three);
  EXPECT_EQ(other->take(1).error().kind(), ErrorKind::kExhausted) << "none in total";
  EXPECT_EQ(other->slots(), 1u) << "what the total refused is not counted here";
  two = Result<BurstQuota::Share>(BurstQuota::Share());
  EXPECT_EQ(quota_->bytes(), kSize);
  EXPECT_EQ(total_->slots(), 2u);
  EXPECT_FALSE(quota_->take(kSize + 1)) << "more bytes than are left";
  EXPECT_FALSE(quota_->take(~std::uint64_t{0}));
  EXPECT_EQ(total_->bytes(), 2 * kSize);
}

}  // namespace
}  // namespace penstock
