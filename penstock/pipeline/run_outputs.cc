// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/run_outputs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <span>

#include "penstock/base/str_format.h"
#include "penstock/pipeline/output_files.h"
#include "penstock/pipeline/run_report.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

Result<void> check_paths(const RunOptions& options) {
  const std::array<const fs::path*, 3> outputs{&options.video, &options.json, &options.report};
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const fs::path& path = *outputs[i];
    if (path.empty()) continue;
    if (options.source.kind == SourceKind::kFile && same_file(path, options.source.file)) {
      return fail(ErrorKind::kInvalidArgument,
                  str_format("output '{}' is the source itself", path.string()));
    }
    if (same_file(path, options.model)) {
      return fail(ErrorKind::kInvalidArgument,
                  str_format("output '{}' is the model's manifest", path.string()));
    }
    for (const fs::path& file : options.model_files) {
      if (!same_file(path, file)) continue;
      return fail(ErrorKind::kInvalidArgument,
                  str_format("output '{}' is a file of the model", path.string()));
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (outputs[j]->empty() || !same_file(path, *outputs[j])) continue;
      return fail(ErrorKind::kInvalidArgument, str_format("outputs '{}' and '{}' are one file",
                                                          outputs[j]->string(), path.string()));
    }
  }
  return {};
}

/// mp4mux goes back to complete what it wrote first; a pipe would get a file that nothing plays.
Result<void> check_video(const fs::path& path) {
  struct stat info{};
  if (path.empty() || ::stat(path.c_str(), &info) != 0) return {};
  if (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode)) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("output '{}' is a pipe, and an MP4 is not written from start to end: "
                           "give a file",
                           path.string()));
  }
  const int standard = standard_descriptor_of(path);
  if (standard == STDERR_FILENO || (standard >= 0 && !S_ISREG(info.st_mode))) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("output '{}' is where messages go, and an MP4 needs a file of its own",
                           path.string()));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<RunOutputs>> RunOutputs::open(const RunOptions& options, FileOps& files,
                                                     Clock& clock) {
  PENSTOCK_TRY(check_paths(options));
  PENSTOCK_TRY(check_video(options.video));
  std::unique_ptr<RunOutputs> outputs(new RunOutputs(options, files));
  if (!options.json.empty()) {
    auto json = JsonLinesWriter::create(options.json, files, clock);
    if (!json) return std::unexpected(std::move(json).error());
    outputs->json_ = std::move(*json);
  }
  if (!options.report.empty()) {
    auto report = OutputFile::open(options.report, files);
    if (!report) return std::unexpected(std::move(report).error());
    outputs->report_ = std::move(*report);
  }
  if (!options.video.empty()) {
    auto video = OutputFile::open(options.video, files);
    if (!video) return std::unexpected(std::move(video).error());
    outputs->video_ = std::move(*video);
  }
  return outputs;
}

Result<void> RunOutputs::close_json() { return json_ != nullptr ? json_->close() : Result<void>(); }

Result<void> RunOutputs::write_report(const RunSummary& summary) {
  const std::string text = is_json_report(report_path_) ? to_json(summary) : to_html(summary);
  auto written = files_.write_all(report_.fd(), std::as_bytes(std::span(text)));
  const auto kept = report_.check_kept(text.size());
  report_.close();
  if (written) return kept;
  return std::unexpected(
      std::move(written).error().context(str_format("writing '{}'", report_path_.string())));
}

Result<void> RunOutputs::close_video() {
  if (!video_.is_open()) return {};
  PENSTOCK_TRY(video_.check_kept());
  video_.close();
  std::error_code ec;
  if (std::filesystem::is_regular_file(video_path_, ec) &&
      std::filesystem::file_size(video_path_, ec) == 0) {
    std::filesystem::remove(video_path_, ec);
  }
  return {};
}

}  // namespace penstock
