// SPDX-License-Identifier: Apache-2.0
//
// The files of a pipeline: which are read and which are written, so that none that is read is
// overwritten and no two outputs are one file, under whatever name (path, hard link, symbolic
// link).
//
//   std::vector<PipelineFile> files = files_of(spec, options);           // the run's own
//   for (const PipelineSource& source : spec.sources) append(files, files_of(spec, source));
//   for (const FileConflict& conflict : find_conflicts(files)) ...
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/pipeline/config_node.h"
#include "penstock/pipeline/pipeline_spec.h"
#include "penstock/pipeline/run_job.h"

namespace penstock {

/// Which file a path is, at the moment of asking.
struct FileIdentity {
  std::filesystem::path place;  ///< place_of() the path.
  dev_t device = 0;
  ino_t inode = 0;
  bool exists = false;
  bool is_special = false;  ///< A device, pipe or socket, which nothing destroys.
};

struct PipelineFile {
  enum class Use { kRead, kWritten, kSocket };
  std::filesystem::path path;
  Use use = Use::kRead;
  std::string what;   ///< "the source 'door'".
  std::string where;  ///< The key that says it: "outputs.json"; empty: none.
  TextPlace place;
  FileIdentity identity;
};

/// What is there whatever sources there are: the outputs, the socket, the pipeline's own file and
/// the files of `model`.
std::vector<PipelineFile> files_of(const PipelineSpec& spec, const RunOptions& model);

/// What a source reads, and its first video.
std::vector<PipelineFile> files_of(const PipelineSpec& spec, const PipelineSource& source);

/// As files_of() a source, once it has begun `video`.
std::vector<PipelineFile> files_of(const PipelineSource& source,
                                   const std::filesystem::path& video);

struct FileConflict {
  PipelineFile written;
  std::string what;  ///< "output 'a.mp4' is the source 'door'".
};

/// Everything that would overwrite something, pair by pair; those of `begin` and later with all
/// that are before them.
std::vector<FileConflict> find_conflicts(std::span<const PipelineFile> files,
                                         std::size_t begin = 0);

}  // namespace penstock
