// SPDX-License-Identifier: Apache-2.0
#include "penstock/base/usable_cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

namespace penstock {
namespace {

class UsableCores : public testing::Test {
 protected:
  UsableCores() {
    std::string pattern = testing::TempDir() + "usable_cores_XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~UsableCores() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void be_in(const std::string& group) const { write("proc/self/cgroup", "0::" + group + "\n"); }
  void limit(const std::string& group, const std::string& text) const {
    write("sys/fs/cgroup/" + group + "/cpu.max", text + "\n");
  }

  std::filesystem::path root_;
};

TEST_F(UsableCores, GivenNoControlGroups_WhenAsked_ThenTheAffinityDecides) {
  EXPECT_FALSE(granted_cores(root_));
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  EXPECT_EQ(usable_cores(root_), CPU_COUNT(&all));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0 && cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cores(root_), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}

TEST_F(UsableCores, GivenAQuotaOfTheOwnGroup_WhenAsked_ThenItIsInCoresRoundedUp) {
  be_in("/system.slice/penstock.service");
  const std::string own = "system.slice/penstock.service";
  limit(own, "200000 100000");
  EXPECT_EQ(granted_cores(root_), 2);
  limit(own, "250000 100000");
  EXPECT_EQ(granted_cores(root_), 3);
  limit(own, "1000 100000");
  EXPECT_EQ(granted_cores(root_), 1);
  limit(own, "6400000 50000");
  EXPECT_EQ(granted_cores(root_), 128);
  limit(own, "max 100000");
  EXPECT_FALSE(granted_cores(root_));
}

TEST_F(UsableCores, GivenQuotasOfSeveralGroupsAbove_WhenAsked_ThenTheLeastDecides) {
  be_in("/a/b/c");
  limit("a/b/c", "max 100000");
  limit("a/b", "700000 100000");
  limit("a", "500000 100000");
  EXPECT_EQ(granted_cores(root_), 5);
  limit("a/b/c", "300000 100000");
  EXPECT_EQ(granted_cores(root_), 3);
  // Groups of others say nothing.
  limit("a/b/d", "100000 100000");
  limit("b", "100000 100000");
  EXPECT_EQ(granted_cores(root_), 3);
}

TEST_F(UsableCores, GivenAContainerThatSeesItsOwnGroupOnly_WhenAsked_ThenThatOneDecides) {
  be_in("/");
  limit("", "400000 100000");
  EXPECT_EQ(granted_cores(root_), 4);
  // Moved out of the container's group, and a group that is not mounted.
  be_in("/../elsewhere");
  EXPECT_EQ(granted_cores(root_), 4);
  be_in("/docker/0123");
  EXPECT_EQ(granted_cores(root_), 4);
}

TEST_F(UsableCores, GivenMoreTimeThanCpus_WhenAsked_ThenTheAffinityDecides) {
  be_in("/");
  limit("", "100000000 100000");
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  EXPECT_EQ(usable_cores(root_), CPU_COUNT(&all));
  limit("", "100000 100000");
  EXPECT_EQ(usable_cores(root_), 1);
}

TEST_F(UsableCores, GivenOlderHierarchiesOrRubbish_WhenAsked_ThenNothingLimits) {
  write("proc/self/cgroup", "4:cpu,cpuacct:/docker\n1:name=systemd:/x\n");
  limit("docker", "100000 100000");
  EXPECT_FALSE(granted_cores(root_));
  be_in("/docker");
  for (const char* text :
       {"", "rubbish", "100000", "-1 100000", "100000 0", "99999999999999999999999 100000"}) {
    limit("docker", text);
    EXPECT_FALSE(granted_cores(root_)) << text;
  }
}

}  // namespace
}  // namespace penstock
