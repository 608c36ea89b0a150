// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/pipeline_files.h"

#include <sys/stat.h>

#include <optional>
#include <utility>

#include "penstock/base/str_format.h"
#include "penstock/pipeline/output_files.h"
#include "penstock/pipeline/pipeline_source.h"

namespace penstock {
namespace {

using Use = PipelineFile::Use;

FileIdentity identity_of(const std::filesystem::path& path) {
  FileIdentity identity;
  identity.place = place_of(path);
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return identity;
  identity.exists = true;
  identity.is_special = !S_ISREG(info.st_mode);
  identity.device = info.st_dev;
  identity.inode = info.st_ino;
  return identity;
}

void add(std::vector<PipelineFile>& files, const std::filesystem::path& path, Use use,
         std::string what, std::string where = {}, TextPlace place = {}) {
  if (path.empty()) return;
  files.push_back({path, use, std::move(what), std::move(where), place, identity_of(path)});
}

bool are_one(const PipelineFile& one, const PipelineFile& other) {
  const FileIdentity& a = one.identity;
  const FileIdentity& b = other.identity;
  // A socket takes the place of what is there; a device may be given twice.
  const bool has_socket = one.use == Use::kSocket || other.use == Use::kSocket;
  if ((a.is_special || b.is_special) && !has_socket) return false;
  const bool one_inode = a.exists && b.exists && a.device == b.device && a.inode == b.inode;
  return one_inode || a.place == b.place;
}

std::optional<FileConflict> conflict_of(const PipelineFile& one, const PipelineFile& other) {
  if ((one.use == Use::kRead && other.use == Use::kRead) || !are_one(one, other)) {
    return std::nullopt;
  }
  if (one.use == Use::kWritten && other.use == Use::kWritten) {
    return FileConflict{one, str_format("outputs '{}' and '{}' are one file", one.path.string(),
                                        other.path.string())};
  }
  const bool other_gives_way = one.use == Use::kRead || other.use == Use::kWritten;
  const PipelineFile& written = other_gives_way ? other : one;
  const PipelineFile& kept = other_gives_way ? one : other;
  return FileConflict{
      written, str_format("{} '{}' is {}", written.use == Use::kSocket ? "control" : "output",
                          written.path.string(), kept.what)};
}

}  // namespace

std::vector<PipelineFile> files_of(const PipelineSpec& spec, const RunOptions& model) {
  std::vector<PipelineFile> files;
  add(files, spec.file, Use::kRead, "the pipeline's own file");
  add(files, model.model, Use::kRead, "a file of the model");
  for (const std::filesystem::path& file : model.model_files) {
    add(files, file, Use::kRead, "a file of the model");
  }
  add(files, spec.control, Use::kSocket, "the control socket", "control", spec.control_place);
  add(files, spec.json, Use::kWritten, "an output", "outputs.json", spec.json_place);
  add(files, spec.events, Use::kWritten, "an output", "outputs.events", spec.events_place);
  add(files, spec.report, Use::kWritten, "an output", "outputs.report", spec.report_place);
  return files;
}

std::vector<PipelineFile> files_of(const PipelineSource& source,
                                   const std::filesystem::path& video) {
  std::vector<PipelineFile> files;
  add(files, file_of(source), Use::kRead, str_format("the source '{}'", source.name));
  add(files, video, Use::kWritten, "a video");
  return files;
}

std::vector<PipelineFile> files_of(const PipelineSpec& spec, const PipelineSource& source) {
  std::vector<PipelineFile> files = files_of(source, video_path(spec, source, 1));
  for (PipelineFile& file : files) {
    file.where = file.use == Use::kWritten ? "outputs.video" : "";
    file.place = file.use == Use::kWritten ? spec.video_place : source.place;
  }
  return files;
}

std::vector<FileConflict> find_conflicts(std::span<const PipelineFile> files, std::size_t begin) {
  std::vector<FileConflict> conflicts;
  for (std::size_t i = begin; i < files.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (auto conflict = conflict_of(files[i], files[j])) {
        conflicts.push_back(std::move(*conflict));
      }
    }
  }
  return conflicts;
}

}  // namespace penstock
