// SPDX-License-Identifier: Apache-2.0
#include "penstock/base/file_ops.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace penstock {
namespace {

class FileOpsTest : public testing::Test {
 protected:
  FileOpsTest() {
    std::string pattern = testing::TempDir() + "file_ops_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~FileOpsTest() override { std::filesystem::remove_all(folder_); }

  static std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text));
  }
  std::string content(const std::string& name) const {
    std::ifstream in(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  FileOps& ops_ = FileOps::system();
  std::filesystem::path folder_;
};

TEST_F(FileOpsTest, GivenAnExistingFile_WhenReplacedByRename_ThenItHoldsTheNewBytes) {
  std::ofstream(folder_ / "out") << "a longer old content";
  auto fd = ops_.create(folder_ / "out.part");
  ASSERT_TRUE(fd);
  ASSERT_TRUE(ops_.write_all(fd->get(), bytes_of("new ")));
  ASSERT_TRUE(ops_.write_all(fd->get(), bytes_of("content")));
  ASSERT_TRUE(ops_.sync(fd->get()));
  ASSERT_TRUE(ops_.rename(folder_ / "out.part", folder_ / "out"));
  EXPECT_EQ(content("out"), "new content");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out.part"));
}

TEST_F(FileOpsTest, GivenAnExistingFile_WhenCreated_ThenItIsTruncated) {
  std::ofstream(folder_ / "out") << "old";
  ASSERT_TRUE(ops_.create(folder_ / "out"));
  EXPECT_EQ(content("out"), "");
}

TEST_F(FileOpsTest, GivenAMissingFolder_WhenCreating_ThenNotFoundNamesThePath) {
  const auto fd = ops_.create(folder_ / "absent" / "out");
  ASSERT_FALSE(fd);
  EXPECT_EQ(fd.error().kind(), ErrorKind::kNotFound);
  EXPECT_NE(fd.error().message().find("absent/out"), std::string::npos);
  EXPECT_EQ(ops_.rename(folder_ / "a", folder_ / "b").error().kind(), ErrorKind::kNotFound);
}

TEST_F(FileOpsTest, GivenAFullDisk_WhenWriting_ThenExhausted) {
  auto fd = ops_.create("/dev/full");
  ASSERT_TRUE(fd);
  const auto written = ops_.write_all(fd->get(), bytes_of("x"));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind(), ErrorKind::kExhausted);
}

TEST_F(FileOpsTest, GivenAClosedDescriptor_WhenUsed_ThenIo) {
  EXPECT_EQ(ops_.write_all(-1, bytes_of("x")).error().kind(), ErrorKind::kIo);
  EXPECT_EQ(ops_.sync(-1).error().kind(), ErrorKind::kIo);
}

// The kernel cuts the write at the limit and refuses the rest.
TEST_F(FileOpsTest, GivenAShortWrite_WhenWriting_ThenItGoesOnUntilTheCauseShows) {
  auto fd = ops_.create(folder_ / "out");
  ASSERT_TRUE(fd);
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limited = old;
  limited.rlim_cur = 5;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limited), 0);
  const auto written = ops_.write_all(fd->get(), bytes_of("0123456789"));
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, old_handler);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind(), ErrorKind::kExhausted);
  EXPECT_EQ(content("out"), "01234");
}

}  // namespace
}  // namespace penstock
