// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/json_lines.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace penstock {
namespace {

/// Takes `room` bytes, then the disk is full.
class FullDisk final : public FileOps {
 public:
  explicit FullDisk(std::size_t room) : room_(room) {}
  Result<UniqueFd> create(const std::filesystem::path&) override {
    return UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  }
  Result<void> write_all(int, std::span<const std::byte> bytes) override {
    if (bytes.size() > room_) return fail(ErrorKind::kExhausted, "No space left on device");
    room_ -= bytes.size();
    written.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  }
  Result<void> sync(int) override { return {}; }
  Result<void> rename(const std::filesystem::path&, const std::filesystem::path&) override {
    return {};
  }
  std::string written;

 private:
  std::size_t room_;
};

FrameResult frame(std::uint64_t number) {
  FrameResult result;
  result.source = "a";
  result.frame = number;
  result.width = 64;
  result.height = 48;
  return result;
}

TEST(JsonLines, GivenFrames_WhenClosed_ThenTheFileHasOneLineEach) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "json_lines_test.jsonl";
  auto writer = JsonLinesWriter::create(path);
  ASSERT_TRUE(writer) << writer.error().message();
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE((*writer)->write(frame(i)));
  ASSERT_TRUE((*writer)->close());
  std::ifstream file(path);
  std::string line;
  int lines = 0;
  while (std::getline(file, line)) {
    EXPECT_NE(line.find("\"frame\":" + std::to_string(lines)), std::string::npos) << line;
    ++lines;
  }
  EXPECT_EQ(lines, 3);
  std::filesystem::remove(path);
}

TEST(JsonLines, GivenALiveSource_WhenASecondHasPassed_ThenLinesReachTheFile) {
  ManualClock clock;
  FullDisk disk(1 << 20);
  auto writer = JsonLinesWriter::create("any", disk, clock);
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->write(frame(0)));
  EXPECT_EQ(disk.written, "");
  clock.advance(std::chrono::milliseconds(1000));
  ASSERT_TRUE((*writer)->write(frame(1)));
  EXPECT_EQ(std::ranges::count(disk.written, '\n'), 2);
}

TEST(JsonLines, GivenAFullDisk_WhenWriting_ThenItFailsOnceAndForAllNamingTheFile) {
  ManualClock clock;
  FullDisk disk(100 << 10);
  auto writer = JsonLinesWriter::create("out/a.jsonl", disk, clock);
  ASSERT_TRUE(writer);
  Result<void> outcome;
  int written = 0;
  while (outcome && written < 100000) {
    outcome = (*writer)->write(frame(std::uint64_t(written)));
    ++written;
  }
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind(), ErrorKind::kExhausted);
  EXPECT_NE(outcome.error().message().find("out/a.jsonl"), std::string::npos);
  EXPECT_NE(outcome.error().message().find("No space left"), std::string::npos);
  // What the disk took are whole lines.
  ASSERT_FALSE(disk.written.empty());
  EXPECT_EQ(disk.written.back(), '\n');
  EXPECT_FALSE((*writer)->write(frame(0)));
  EXPECT_FALSE((*writer)->close());
}

/// A real file on a disk that takes `room` bytes and the part of a write that fits.
class CutDisk final : public FileOps {
 public:
  explicit CutDisk(std::size_t room) : room_(room) {}
  Result<UniqueFd> create(const std::filesystem::path& path) override {
    return FileOps::system().create(path);
  }
  Result<void> write_all(int fd, std::span<const std::byte> bytes) override {
    const auto part = bytes.first(std::min(room_, bytes.size()));
    room_ -= part.size();
    EXPECT_TRUE(FileOps::system().write_all(fd, part));
    if (part.size() == bytes.size()) return {};
    return fail(ErrorKind::kExhausted, "No space left on device");
  }
  Result<void> sync(int fd) override { return FileOps::system().sync(fd); }
  Result<void> rename(const std::filesystem::path&, const std::filesystem::path&) override {
    return {};
  }

 private:
  std::size_t room_;
};

std::string read_all(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(JsonLines, GivenADiskThatFillsInALine_WhenWriting_ThenTheFileEndsAfterAWholeOne) {
  const auto path = std::filesystem::path(testing::TempDir()) / "json_lines_cut.jsonl";
  const std::string line = to_json_line(frame(0)) + "\n";
  for (const std::size_t more : {std::size_t{0}, std::size_t{1}, line.size() - 1}) {
    ManualClock clock;
    // A first flush that fits, and one that ends inside its third line.
    CutDisk disk(line.size() * 4 + more);
    auto writer = JsonLinesWriter::create(path, disk, clock);
    ASSERT_TRUE(writer);
    ASSERT_TRUE((*writer)->write(frame(0)));
    clock.advance(std::chrono::seconds(2));
    ASSERT_TRUE((*writer)->write(frame(1)));
    for (std::uint64_t i = 2; i < 7; ++i) ASSERT_TRUE((*writer)->write(frame(i)));
    EXPECT_FALSE((*writer)->close());
    const std::string text = read_all(path);
    EXPECT_EQ(std::ranges::count(text, '\n'), 4) << more;
    EXPECT_TRUE(text.ends_with(to_json_line(frame(3)) + "\n")) << more;
  }
  std::filesystem::remove(path);
}

TEST(JsonLines, GivenAFileThatAnotherProgramCuts_WhenClosed_ThenAnErrorSaysSo) {
  const auto path = std::filesystem::path(testing::TempDir()) / "json_lines_short.jsonl";
  auto writer = JsonLinesWriter::create(path);
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->write(frame(0)));
  ASSERT_TRUE((*writer)->close());
  auto again = JsonLinesWriter::create(path);
  ManualClock clock;
  auto late = JsonLinesWriter::create(path, FileOps::system(), clock);
  ASSERT_FALSE(late) << "the other one has it";
  EXPECT_NE(late.error().message().find("another run is writing"), std::string::npos);
  again->reset();
  late = JsonLinesWriter::create(path, FileOps::system(), clock);
  ASSERT_TRUE(late);
  ASSERT_TRUE((*late)->write(frame(0)));
  clock.advance(std::chrono::seconds(2));
  ASSERT_TRUE((*late)->write(frame(1)));
  std::filesystem::resize_file(path, 3);
  const auto closed = (*late)->close();
  ASSERT_FALSE(closed);
  EXPECT_NE(closed.error().message().find("cut the file short"), std::string::npos);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace penstock
