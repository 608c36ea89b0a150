// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/json_lines.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <span>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {
constexpr std::size_t kFlushBytes = 64 << 10;
constexpr Nanoseconds kFlushAge = std::chrono::seconds(1);
}  // namespace

JsonLinesWriter::JsonLinesWriter(OutputFile file, std::filesystem::path path, FileOps& files,
                                 Clock& clock)
    : file_(std::move(file)),
      path_(std::move(path)),
      files_(files),
      clock_(clock),
      flushed_(clock.now()) {}

Result<std::unique_ptr<JsonLinesWriter>> JsonLinesWriter::create(const std::filesystem::path& path,
                                                                 FileOps& files, Clock& clock) {
  auto file = OutputFile::open(path, files);
  if (!file) return std::unexpected(std::move(file).error());
  return std::unique_ptr<JsonLinesWriter>(
      new JsonLinesWriter(std::move(*file), path, files, clock));
}

Result<void> JsonLinesWriter::write(const FrameResult& frame) {
  return write_line(to_json_line(frame));
}

Result<void> JsonLinesWriter::write_line(std::string_view line) {
  if (failed_) return std::unexpected(*failed_);
  buffer_ += line;
  buffer_ += '\n';
  ++lines_;
  if (buffer_.size() < kFlushBytes && clock_.now() - flushed_ < kFlushAge) return {};
  return flush();
}

Result<void> JsonLinesWriter::flush() {
  flushed_ = clock_.now();
  if (buffer_.empty()) return {};
  auto written = files_.write_all(file_.fd(), std::as_bytes(std::span(buffer_)));
  if (!written) keep_whole_lines();
  written_ += buffer_.size();
  buffer_.clear();
  if (!written) {
    failed_ = std::move(written).error().context(str_format("writing '{}'", path_.string()));
    return std::unexpected(*failed_);
  }
  return {};
}

// A write that failed may have come to the middle of a line.
void JsonLinesWriter::keep_whole_lines() {
  const auto size = file_.size();
  if (!size || *size <= written_) return;
  const auto part =
      static_cast<std::size_t>(std::min<std::uint64_t>(*size - written_, buffer_.size()));
  const std::size_t end = buffer_.rfind('\n', part - 1);
  file_.cut_to(written_ + (end == std::string::npos ? 0 : end + 1));
}

Result<void> JsonLinesWriter::close() {
  if (!file_.is_open()) return {};
  Result<void> outcome = failed_ ? Result<void>(std::unexpected(*failed_)) : flush();
  struct stat info{};
  // Pipes and terminals cannot be synced.
  if (outcome && ::fstat(file_.fd(), &info) == 0 && S_ISREG(info.st_mode)) {
    auto synced = files_.sync(file_.fd());
    if (!synced) {
      outcome = std::unexpected(
          std::move(synced).error().context(str_format("writing '{}'", path_.string())));
    }
  }
  if (outcome) outcome = file_.check_kept(written_);
  file_.close();
  return outcome;
}

}  // namespace penstock
