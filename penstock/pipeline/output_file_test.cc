// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace penstock {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// Puts `path` in the place of stdout while it lives.
class StdoutAt {
 public:
  StdoutAt(const fs::path& path, int flags) : before_(::dup(STDOUT_FILENO)) {
    const UniqueFd to(::open(path.c_str(), flags | O_CLOEXEC, 0644));
    EXPECT_GE(::dup2(to.get(), STDOUT_FILENO), 0);
  }
  ~StdoutAt() { ::dup2(before_.get(), STDOUT_FILENO); }
  StdoutAt(const StdoutAt&) = delete;
  StdoutAt& operator=(const StdoutAt&) = delete;

 private:
  UniqueFd before_;
};

class OutputFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  FileOps& ops_ = FileOps::system();
  fs::path folder_;
};

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST_F(OutputFileTest, GivenStdoutsFile_WhenOpenedAndWritten_ThenNeitherOverwritesTheOther) {
  const fs::path path = folder_ / "out";
  {
    const StdoutAt redirected(path, O_WRONLY | O_CREAT);
    ASSERT_TRUE(ops_.write_all(STDOUT_FILENO, bytes("before ")));
    auto file = OutputFile::open(path, ops_);
    if (!file) FAIL() << file.error().message();
    ASSERT_TRUE(ops_.write_all(file->fd(), bytes("line ")));
    ASSERT_TRUE(ops_.write_all(STDOUT_FILENO, bytes("table")));
  }
  EXPECT_EQ(read(path), "before line table");
}

TEST_F(OutputFileTest, GivenNamesOfStdout_WhenAsked_ThenItIsKnownByEach) {
  const fs::path path = folder_ / "out";
  bool by_path = false, by_link = false, by_device = false, other = true;
  {
    const StdoutAt redirected(path, O_WRONLY | O_CREAT);
    fs::create_symlink(path, folder_ / "link");
    by_path = standard_descriptor_of(path) == STDOUT_FILENO;
    by_link = standard_descriptor_of(folder_ / "link") == STDOUT_FILENO;
    by_device = standard_descriptor_of("/dev/stdout") == STDOUT_FILENO;
    other = standard_descriptor_of(folder_) >= 0;
  }
  EXPECT_TRUE(by_path);
  EXPECT_TRUE(by_link);
  EXPECT_TRUE(by_device);
  EXPECT_FALSE(other);
}

TEST_F(OutputFileTest, GivenTheNullDeviceAsStdout_WhenAsked_ThenItIsNobodys) {
  int found = 0;
  {
    const StdoutAt redirected("/dev/null", O_WRONLY);
    found = standard_descriptor_of("/dev/null");
  }
  EXPECT_EQ(found, -1);
}

TEST_F(OutputFileTest, GivenAFileThatIsDeleted_WhenChecked_ThenAnIoErrorNamesIt) {
  auto file = OutputFile::open(folder_ / "out", ops_);
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_TRUE(file->check_kept());
  fs::remove(folder_ / "out");
  const auto kept = file->check_kept();
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().kind(), ErrorKind::kIo);
  EXPECT_NE(kept.error().message().find((folder_ / "out").string()), std::string::npos);
}

TEST_F(OutputFileTest, GivenADevice_WhenChecked_ThenItIsKept) {
  auto file = OutputFile::open("/dev/null", ops_);
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_TRUE(file->check_kept());
}

}  // namespace
}  // namespace penstock
