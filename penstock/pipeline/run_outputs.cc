// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/run_outputs.h"

#include <format>
#include <span>

#include "penstock/pipeline/run_report.h"

namespace penstock {

Result<std::unique_ptr<RunOutputs>> RunOutputs::open(const RunOptions& options, FileOps& files,
                                                     Clock& clock) {
  for (const auto* path : {&options.video, &options.json, &options.report}) {
    std::error_code ec;
    if (!path->empty() && options.source.kind == SourceKind::kFile &&
        std::filesystem::equivalent(*path, options.source.file, ec)) {
      return fail(ErrorKind::kInvalidArgument,
                  std::format("output '{}' is the source itself", path->string()));
    }
  }
  std::unique_ptr<RunOutputs> outputs(new RunOutputs(options, files));
  if (!options.json.empty()) {
    auto json = JsonLinesWriter::create(options.json, files, clock);
    if (!json) return std::unexpected(std::move(json).error());
    outputs->json_ = std::move(*json);
  }
  if (!options.report.empty()) {
    auto report = files.create(options.report);
    if (!report) return std::unexpected(std::move(report).error());
    outputs->report_ = std::move(*report);
  }
  if (!options.video.empty()) {
    // filesink opens it again; this only makes the message the same for all three.
    auto video = files.create(options.video);
    if (!video) return std::unexpected(std::move(video).error());
  }
  return outputs;
}

Result<void> RunOutputs::close_json() { return json_ != nullptr ? json_->close() : Result<void>(); }

Result<void> RunOutputs::write_report(const RunSummary& summary) {
  const std::string html = to_html(summary);
  auto written = files_.write_all(report_.get(), std::as_bytes(std::span(html)));
  report_.reset();
  if (written) return {};
  return std::unexpected(
      std::move(written).error().context(std::format("writing '{}'", report_path_.string())));
}

void RunOutputs::remove_empty_video() {
  std::error_code ec;
  if (!video_path_.empty() && std::filesystem::is_regular_file(video_path_, ec) &&
      std::filesystem::file_size(video_path_, ec) == 0) {
    std::filesystem::remove(video_path_, ec);
  }
}

}  // namespace penstock
