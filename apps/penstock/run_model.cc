// SPDX-License-Identifier: Apache-2.0
#include "apps/penstock/run_model.h"

#include <sys/resource.h>

#include <string_view>
#include <utility>
#include <vector>

#include "apps/penstock/model_names.h"
#include "apps/penstock/stop_signals.h"
#include "gst/penanalysis_meta.h"
#include "penstock/base/exit_code.h"
#include "penstock/base/str_format.h"

namespace penstock {
namespace {

/// With fewer, libraries crash that never expect to be refused one.
constexpr rlim_t kLeastDescriptors = 32;

std::optional<CopyClass> parse_copy_class(std::string_view text) {
  for (int i = 0; i < kCopyClassCount; ++i) {
    if (text == to_string(CopyClass(i))) return CopyClass(i);
  }
  return std::nullopt;
}

/// The rows of peninfer's `stats` property.
std::vector<CopyLedger::Row> read_ledger(GstElement* infer) {
  std::vector<CopyLedger::Row> ledger;
  GstStructure* stats = nullptr;
  g_object_get(infer, "stats", &stats, nullptr);
  if (stats == nullptr) return ledger;
  const GValue* rows = gst_structure_get_value(stats, "ledger");
  const guint size = rows != nullptr ? gst_value_list_get_size(rows) : 0;
  for (guint i = 0; i < size; ++i) {
    const GstStructure* row = gst_value_get_structure(gst_value_list_get_value(rows, i));
    const gchar* name = gst_structure_get_string(row, "class");
    const gchar* site = gst_structure_get_string(row, "site");
    guint64 count = 0;
    guint64 bytes = 0;
    gst_structure_get_uint64(row, "count", &count);
    gst_structure_get_uint64(row, "bytes", &bytes);
    const auto copy_class = parse_copy_class(name != nullptr ? name : "");
    if (copy_class) ledger.push_back({*copy_class, site != nullptr ? site : "", count, bytes});
  }
  gst_structure_free(stats);
  return ledger;
}

std::optional<FrameReading> read_frame(GstBuffer* buffer) {
  const gst::Analysis* analysis = gst::read_analysis(buffer);
  if (analysis == nullptr) return std::nullopt;
  return FrameReading{&analysis->result, analysis->predicted ? nullptr : &analysis->times};
}

/// What a source holds is data, whether malformed or of a kind that is not analysed; one that can't
/// be read, or stops, is no failed output.
int exit_code_of_source(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUnsupported:
    case ErrorKind::kInvalidArgument:
      return kExitData;
    case ErrorKind::kIo:
    case ErrorKind::kDeadline:
      return kExitUnavailable;
    default:
      return exit_code(kind);
  }
}

}  // namespace

Result<RunModel> find_run_model(const std::string& name_or_path, const std::string& models) {
  auto path = find_named_model(name_or_path, models_folder(models));
  if (!path) return std::unexpected(std::move(path).error());
  auto manifest = load_manifest(*path);
  if (!manifest) return std::unexpected(std::move(manifest).error());
  return RunModel{std::move(*path), std::move(*manifest)};
}

void add_model_files(RunOptions& options, const RunModel& model) {
  const Manifest& manifest = model.manifest;
  options.model_files.push_back(model.path);
  options.model_files.push_back(manifest.artefact);
  for (const ManifestData& data : manifest.data) {
    options.model_files.push_back(manifest.folder / data.path);
  }
}

void set_model(RunOptions& options, const RunModel& model, const EngineFlags& engine) {
  const Manifest& manifest = model.manifest;
  options.model = model.path;
  add_model_files(options, model);
  options.model_name = manifest.name;
  options.task = manifest.task;
  options.licence = manifest.licence;
  if (!options.threshold) options.threshold = manifest.threshold;
  if (!engine.library.empty()) options.properties.emplace_back("engine-library", engine.library);
  if (!engine.provider_library.empty()) {
    options.properties.emplace_back("provider-library", engine.provider_library);
  }
  options.read_frame = read_frame;
  options.read_ledger = read_ledger;
}

Result<void> check_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kLeastDescriptors) return {};
  return fail(ErrorKind::kExhausted,
              str_format("only {} files may be open at once (ulimit -n); a run needs {}",
                         limit.rlim_cur, kLeastDescriptors));
}

int run_exit_code(const std::optional<Error>& error, RunPart failed, bool stopped) {
  if (error) {
    switch (failed) {
      case RunPart::kOutputCreate:
        return error->kind() == ErrorKind::kInvalidArgument ? kExitUsage : kExitCannotCreate;
      case RunPart::kOutputWrite:
        return kExitIo;
      case RunPart::kSource:
        return exit_code_of_source(error->kind());
      case RunPart::kModel:
        // The command line was read before; what does not fit is the manifest.
        return error->kind() == ErrorKind::kInvalidArgument ? kExitData : exit_code(error->kind());
      default:
        return exit_code(error->kind());
    }
  }
  return stopped ? 128 + StopSignals::received() : kExitOk;
}

}  // namespace penstock
