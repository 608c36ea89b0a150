// SPDX-License-Identifier: Apache-2.0
#include "gst/infer_config.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "gst/burst_opener.h"
#include "gst/device_choice.h"
#include "gst/object_task.h"
#include "gst/tile_task.h"
#include "penstock/base/str_format.h"

namespace penstock::gst {
namespace {

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> parts;
  while (true) {
    const auto comma = list.find(',');
    std::string_view part = list.substr(0, comma);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    parts.emplace_back(part);
    if (comma == std::string_view::npos) return parts;
    list.remove_prefix(comma + 1);
  }
}

Result<Manifest> find_manifest(const InferConfig& config) {
  if (config.model.empty()) {
    return fail(ErrorKind::kInvalidArgument, "property 'model' is not set");
  }
  const auto path = find_model(config.model, models_folder(config.models_folder));
  if (!path) return std::unexpected(path.error());
  auto manifest = load_manifest(*path);
  if (!manifest || config.labels.empty()) return manifest;
  std::vector<std::string> labels = split(config.labels);
  if (!manifest->labels.empty() && labels.size() != manifest->labels.size()) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("property 'labels' names {} classes, the model has {}", labels.size(),
                           manifest->labels.size()));
  }
  manifest->labels = std::move(labels);
  return manifest;
}

/// Requests that the executor lets one stream have waiting. Below what the element has promised to
/// hold, a deep queue would stay empty; the element's own budget bounds it from above.
std::size_t source_share(const InferConfig& config) {
  return std::max<std::size_t>(InferenceOptions{}.source_share, config.queue_depth);
}

/// Everything that decides what an inference computes and how; elements may share it only if equal.
std::string settings_of(const InferConfig& config) {
  return str_format(
      "model={} device={} policy={} batch-size={} max-wait={} threshold={} iou-threshold={} "
      "max-objects={} labels={} engine-library={} provider-library={} burst={} burst-model={} "
      "burst-reconnect={} models-folder={} workers={} "
      "queue-depth={} read-tensors={}",
      config.model, config.device, config.policy == Policy::kLatency ? "latency" : "throughput",
      config.batch_size, config.max_wait_ns, config.threshold, config.iou_threshold,
      config.max_objects, config.labels, config.engine_library, config.provider_library,
      config.burst, config.burst_model, config.burst_reconnect, config.models_folder,
      config.workers, source_share(config), config.read_tensors);
}

Result<TileGrid> tile_grid(const InferConfig& config) {
  const std::string& text = config.tiles;
  TileGrid grid{.overlap = static_cast<int>(config.tile_overlap)};
  const char* const end = text.c_str() + text.size();
  const auto columns = std::from_chars(text.c_str(), end, grid.columns);
  const bool has_rows = columns.ec == std::errc() && columns.ptr != end && *columns.ptr == 'x';
  const auto rows =
      has_rows ? std::from_chars(columns.ptr + 1, end, grid.rows) : std::from_chars_result{end, {}};
  if (!has_rows || rows.ec != std::errc() || rows.ptr != end) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("property 'tiles' is '{}', not columns x rows as 3x2", text));
  }
  return grid;
}

DecodeOptions decode_options(const InferConfig& config, const Manifest& manifest) {
  DecodeOptions decode = decode_options_of(manifest);
  if (config.threshold >= 0) decode.threshold = config.threshold;
  if (config.iou_threshold >= 0) decode.iou_threshold = config.iou_threshold;
  decode.max_objects = static_cast<int>(config.max_objects);
  decode.read_tensors = config.read_tensors;
  return decode;
}

Result<void> check_tiles(const InferConfig& config) {
  if (config.roi != Roi::kTiles) return {};
  const auto grid = tile_grid(config);
  if (!grid) return std::unexpected(grid.error());
  constexpr int kAnySide = 2;
  const auto tiles = plan_tiles(*grid, kAnySide, kAnySide);
  if (!tiles) return std::unexpected(tiles.error().context("property 'tiles'"));
  return {};
}

Result<OpenedInferencePtr> for_regions(const InferConfig& config,
                                       Result<OpenedInferencePtr> opened) {
  if (!opened || config.roi != Roi::kTiles) return opened;
  const std::string& task = (*opened)->inference->manifest().task;
  if (task == "detection") return opened;
  return fail(ErrorKind::kInvalidArgument,
              str_format("property 'roi' is tiles, which is for models of task 'detection'; the "
                         "model's is '{}'",
                         task));
}

}  // namespace

guint64 batch_wait_ns(const InferConfig& config) {
  const bool others_may_join = !config.model_instance.empty() && config.batch_size > 1;
  return others_may_join ? config.max_wait_ns : 0;
}

void choose_regions(const InferConfig& config, const Manifest& manifest,
                    InferStream::Options& options) {
  if (config.roi == Roi::kFullFrame) {
    options.make_tasks = [name = manifest.name] { return whole_frame_tasks(name); };
    return;
  }
  // The regions of a frame may fill a batch; a stream's share of the executor is no larger than
  // that.
  options.lanes = config.batch_size;
  if (config.roi == Roi::kTiles) {
    options.make_tasks = [grid = tile_grid(config).value_or(TileGrid{}),
                          merge = decode_options(config, manifest),
                          name = manifest.name] { return tile_tasks(grid, merge, name); };
    return;
  }
  ObjectOptions objects{.model = manifest.name, .is_pose = manifest.task == "pose", .filter = {}};
  if (!config.object_classes.empty()) objects.filter.classes = split(config.object_classes);
  objects.filter.min_size = static_cast<int>(config.object_min_size);
  objects.filter.reinfer_interval = config.reinfer_interval;
  objects.filter.max_objects = config.max_objects;
  options.make_tasks = [objects, counts = options.counts] { return object_tasks(objects, counts); };
}

Result<OpenedInferencePtr> open_inference(GstElement* element, const InferConfig& config,
                                          OpenedInferencePtr held) {
  const auto negative_but_not_own = [](float value) { return value < 0 && value != -1; };
  if (negative_but_not_own(config.threshold) || negative_but_not_own(config.iou_threshold)) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("threshold {} and iou-threshold {} must be within 0..1, or -1",
                           config.threshold, config.iou_threshold));
  }
  PENSTOCK_TRY(check_tiles(config));
  const auto open = [&]() -> Result<OpenedInferencePtr> {
    const auto device = config.burst.empty() ? find_device(element, config.device)
                                             : find_burst_device(config.device);
    if (!device) return std::unexpected(device.error());
    const auto manifest = find_manifest(config);
    if (!manifest) return std::unexpected(manifest.error());
    InferenceOptions options;
    options.policy = config.policy;
    options.workers = static_cast<int>(config.workers);
    // As the default is: room for the shares of eight elements, on as many lanes as a batch has
    // places.
    options.queue_depth =
        options.queue_depth / options.source_share * source_share(config) * config.batch_size;
    options.source_share = source_share(config);
    options.batch_size = static_cast<int>(config.batch_size);
    options.max_wait = Nanoseconds(batch_wait_ns(config));
    options.decode = decode_options(config, *manifest);
    options.engine_library = config.engine_library;
    options.provider_library = config.provider_library;
    if (!config.burst.empty()) {
      options.open_session = burst_opener(
          element,
          {.path = config.burst, .model = config.burst_model, .reconnect = config.burst_reconnect});
    }
    auto inference = FrameInference::open(*device, *manifest, options);
    if (!inference) return std::unexpected(inference.error());
    return std::make_shared<OpenedInference>(*device, std::move(*inference));
  };
  if (config.model_instance.empty()) {
    held.reset();
    return for_regions(config, open());
  }
  return for_regions(config,
                     shared_registry(element)->open(config.model_instance, settings_of(config),
                                                    std::move(held), open));
}

}  // namespace penstock::gst
