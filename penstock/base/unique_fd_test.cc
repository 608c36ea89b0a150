// SPDX-License-Identifier: Apache-2.0
#include "penstock/base/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace penstock {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

int open_null() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

TEST(UniqueFd, GivenAnOwner_WhenItEnds_ThenTheDescriptorIsClosed) {
  const int raw = open_null();
  {
    const UniqueFd fd(raw);
    EXPECT_TRUE(fd.is_valid());
    EXPECT_TRUE(is_open(raw));
  }
  EXPECT_FALSE(is_open(raw));
}

TEST(UniqueFd, GivenTwoOwners_WhenOneIsMovedOntoTheOther_ThenOnlyTheOldOneIsClosed) {
  const int first = open_null();
  const int second = open_null();
  UniqueFd a(first);
  UniqueFd b(second);
  a = std::move(b);
  EXPECT_FALSE(is_open(first));
  EXPECT_TRUE(is_open(second));
  EXPECT_EQ(a.get(), second);
  EXPECT_FALSE(b.is_valid());
}

TEST(UniqueFd, GivenAnOwner_WhenReleased_ThenTheDescriptorStaysOpen) {
  UniqueFd fd(open_null());
  const int raw = fd.release();
  EXPECT_FALSE(fd.is_valid());
  EXPECT_TRUE(is_open(raw));
  ::close(raw);
}

TEST(UniqueFd, GivenAnOwner_WhenResetToItsOwnDescriptor_ThenItStaysOpen) {
  UniqueFd fd(open_null());
  fd.reset(fd.get());
  EXPECT_TRUE(is_open(fd.get()));
}

}  // namespace
}  // namespace penstock
