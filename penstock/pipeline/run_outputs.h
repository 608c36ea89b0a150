// SPDX-License-Identifier: Apache-2.0
//
// RunOutputs are the files of a run. All are created before the work starts, so that a wrong path
// costs nothing, and closed whatever ends it.
#pragma once

#include <filesystem>
#include <memory>

#include "penstock/base/error.h"
#include "penstock/base/file_ops.h"
#include "penstock/pipeline/json_lines.h"
#include "penstock/pipeline/output_file.h"
#include "penstock/pipeline/run_job.h"

namespace penstock {

class RunOutputs {
 public:
  /// kInvalidArgument, before any file is touched, when an output is the source, the manifest or
  /// another output, under whatever name (path, hard link, symbolic link), or the video goes to a
  /// pipe or to where messages go. Devices and pipes may be given twice.
  static Result<std::unique_ptr<RunOutputs>> open(const RunOptions& options, FileOps& files,
                                                  Clock& clock);
  /// Null without JSON output.
  JsonLinesWriter* json() { return json_.get(); }
  bool wants_report() const { return report_.is_open(); }

  Result<void> close_json();
  Result<void> write_report(const RunSummary& summary);
  /// The pipeline writes the MP4 itself; one that never got a byte is removed. kIo when it was
  /// deleted meanwhile.
  Result<void> close_video();

 private:
  RunOutputs(const RunOptions& options, FileOps& files)
      : video_path_(options.video), report_path_(options.report), files_(files) {}

  std::filesystem::path video_path_;
  std::filesystem::path report_path_;
  FileOps& files_;
  std::unique_ptr<JsonLinesWriter> json_;
  OutputFile report_;
  OutputFile video_;  ///< Only watched: filesink opens the path again.
};

}  // namespace penstock
