// SPDX-License-Identifier: Apache-2.0
//
// JsonLinesWriter writes one line a frame (docs/json.md). Lines are buffered to 64 KiB or a second,
// whichever comes first, so a reader that follows the file sees a live source. After a failed write
// the file ends with whole lines as far as the disk took them, and every later call fails the same
// way.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "penstock/base/clock.h"
#include "penstock/base/error.h"
#include "penstock/base/file_ops.h"
#include "penstock/pipeline/output_file.h"
#include "penstock/records/records.h"

namespace penstock {

class JsonLinesWriter {
 public:
  static Result<std::unique_ptr<JsonLinesWriter>> create(const std::filesystem::path& path,
                                                         FileOps& files = FileOps::system(),
                                                         Clock& clock = Clock::system());
  Result<void> write(const FrameResult& frame);
  /// A line of the caller's own, without its end.
  Result<void> write_line(std::string_view line);
  /// Writes what is buffered.
  Result<void> flush();
  /// Writes what is buffered and syncs regular files; kIo for one that was deleted meanwhile.
  /// Called once; nothing is written after it.
  Result<void> close();
  std::uint64_t lines() const { return lines_; }

 private:
  JsonLinesWriter(OutputFile file, std::filesystem::path path, FileOps& files, Clock& clock);
  void keep_whole_lines();

  OutputFile file_;
  std::filesystem::path path_;
  FileOps& files_;
  Clock& clock_;
  std::string buffer_;
  TimePoint flushed_;
  std::uint64_t lines_ = 0;
  std::uint64_t written_ = 0;  ///< Bytes that have reached the file.
  std::optional<Error> failed_;
};

}  // namespace penstock
