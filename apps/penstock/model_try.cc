// SPDX-License-Identifier: Apache-2.0
#include "apps/penstock/model_try.h"

#include <gst/gst.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/penstock/commands.h"
#include "apps/penstock/messages.h"
#include "apps/penstock/model_names.h"
#include "apps/penstock/number_flags.h"
#include "apps/penstock/picture_file.h"
#include "apps/penstock/picture_regions.h"
#include "penstock/base/exit_code.h"
#include "penstock/base/str_format.h"
#include "penstock/exec/frame_inference.h"
#include "penstock/model/preparation.h"
#include "penstock/pipeline/output_files.h"

namespace penstock {
namespace {

constexpr std::size_t kMostLines = 20;

template <typename T, typename Line>
void list(const std::vector<T>& items, Line line) {
  for (std::size_t i = 0; i < std::min(items.size(), kMostLines); ++i) say("  " + line(items[i]));
  if (items.size() > kMostLines) say(str_format("  and {} more", items.size() - kMostLines));
}

std::string object_line(const Detection& object) {
  std::string text = str_format("{} {:.2f} at {:.0f},{:.0f}, {:.0f} x {:.0f}", object.label,
                                object.confidence, object.x, object.y, object.width, object.height);
  if (object.rotated) {
    // No "-0.00" for a box that is hardly turned.
    const float angle = std::abs(object.rotated->angle) < 0.005f ? 0.0f : object.rotated->angle;
    text += str_format(", turned by {:.2f} rad", angle);
  }
  if (!object.keypoints.empty()) {
    const auto seen = std::ranges::count_if(object.keypoints,
                                            [](const Keypoint& k) { return k.confidence >= 0.5f; });
    text += str_format(", {} of {} keypoints seen", seen, object.keypoints.size());
  }
  return text;
}

bool is_empty(const Manifest& manifest, const InferenceResult& result) {
  const std::string& task = manifest.task;
  if (task == "classification") return result.classes.empty();
  if (task == "text-recognition") return result.texts.empty();
  if (task == "semantic-segmentation") return result.areas.empty();
  return task != "embedding" && task != "raw" && result.objects.empty();
}

void say_doubts(const Manifest& manifest) {
  say(str_format("nothing was found with: {}, threshold {:.6g}",
                 describe_preprocessing(manifest.preprocess), manifest.threshold));
  say("  if the picture shows what the model knows, one of these is not what it was trained with: "
      "try another --order, --scale, --mean, --std or --fit, or a lower --threshold");
}

void say_found(const Manifest& manifest, const InferenceResult& result) {
  const std::string& task = manifest.task;
  if (task == "classification") {
    say(str_format("classes: {}", result.classes.size()));
    list(result.classes,
         [](const Classification& c) { return str_format("{} {:.3f}", c.label, c.confidence); });
  } else if (task == "text-recognition") {
    say(str_format("lines of text: {}", result.texts.size()));
    list(result.texts,
         [](const TextLine& line) { return str_format("{} {:.3f}", line.text, line.confidence); });
  } else if (task == "semantic-segmentation") {
    say(str_format("classes in the picture: {}", result.areas.size()));
    list(result.areas,
         [](const ClassArea& a) { return str_format("{} {:.1f} %", a.label, 100 * a.fraction); });
  } else if (task == "embedding") {
    double square = 0;
    for (const float value : result.embedding) square += double{value} * double{value};
    say(str_format("embedding: {} values, length {:.6g}", result.embedding.size(),
                   std::sqrt(square)));
  } else if (task == "raw") {
    say(str_format("tensors: {}", result.device.tensors.size()));
    list(result.device.tensors, [](const Tensor& t) {
      return str_format("{} {} {}", t.name, to_string(t.type), to_string(t.shape));
    });
  } else {
    say(str_format("objects: {}", result.objects.size()));
    list(result.objects, object_line);
  }
}

Result<InferenceResult> infer(const Manifest& manifest, const TryOptions& options,
                              const FramePtr& frame) {
  auto device = open_device(DeviceId{});
  if (!device) return std::unexpected(device.error());
  DecodeOptions decode = decode_options_of(manifest);
  decode.threshold = options.threshold.value_or(decode.threshold);
  decode.iou_threshold = options.iou_threshold.value_or(decode.iou_threshold);
  auto inference = FrameInference::open(*device, manifest,
                                        {.policy = Policy::kLatency,
                                         .decode = decode,
                                         .engine_library = options.engine.library,
                                         .provider_library = options.engine.provider_library});
  if (!inference) return std::unexpected(std::move(inference).error());
  auto future = (*inference)
                    ->executor()
                    .submit({.frame = frame, .roi = {}, .source = {"picture"}, .generation = 0},
                            WhenFull::kWait);
  if (!future) return std::unexpected(std::move(future).error());
  auto result = future->get();
  if (result && !result->unusable.empty()) {
    return fail(ErrorKind::kInvalidArgument, result->unusable);
  }
  return result;
}

struct Flags {
  std::string model, models, picture, out;
  EngineFlags engine;
  std::optional<float> threshold, iou_threshold;
};

std::vector<std::filesystem::path> files_of(const Manifest& manifest,
                                            const std::filesystem::path& path) {
  std::vector<std::filesystem::path> files{path, manifest.artefact};
  for (const ManifestData& data : manifest.data) files.push_back(manifest.folder / data.path);
  return files;
}

int try_command(const Flags& flags) {
  auto path = find_named_model(flags.model, models_folder(flags.models));
  if (!path) return report(path.error());
  auto manifest = load_manifest(*path);
  if (!manifest) return report(manifest.error());
  auto tried = try_model(*manifest, {.picture = flags.picture,
                                     .out = flags.out,
                                     .read_files = files_of(*manifest, *path),
                                     .engine = flags.engine,
                                     .threshold = flags.threshold,
                                     .iou_threshold = flags.iou_threshold});
  return tried ? kExitOk : report(tried.error());
}

}  // namespace

Result<void> check_outputs(const TryOptions& options) {
  if (options.out.empty()) return {};
  PENSTOCK_TRY(check_picture_name(options.out));
  if (same_file(options.out, options.picture)) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("--out '{}' is the picture itself", options.out.string()));
  }
  for (const auto& file : options.read_files) {
    if (!same_file(options.out, file)) continue;
    return fail(ErrorKind::kInvalidArgument, str_format("--out '{}' is '{}', which is read",
                                                        options.out.string(), file.string()));
  }
  return {};
}

Result<void, OutputError> try_model(const Manifest& manifest, const TryOptions& options) {
  PENSTOCK_TRY(check_outputs(options));
  gst_init(nullptr, nullptr);
  auto picture = read_picture(options.picture);
  if (!picture) return std::unexpected(std::move(picture).error());
  const FramePtr frame = to_frame(*picture);
  auto result = infer(manifest, options, frame);
  if (!result) return std::unexpected(std::move(result).error());
  say(str_format("tried on {}, {}x{}: preprocess {:.1f} ms, infer {:.1f} ms, decode {:.1f} ms",
                 options.picture.string(), picture->width, picture->height,
                 static_cast<double>(result->times.preprocess.count()) / 1e6,
                 static_cast<double>(result->times.infer.count()) / 1e6,
                 static_cast<double>(result->times.decode.count()) / 1e6));
  say_found(manifest, *result);
  if (options.is_new && is_empty(manifest, *result)) say_doubts(manifest);
  if (options.out.empty()) return {};
  PENSTOCK_TRY(color_regions(*picture, result->device, result->objects, manifest.labels));
  PENSTOCK_TRY(write_picture(options.out, *std::move(picture), *result));
  say(str_format("wrote {}", options.out.string()));
  return {};
}

Command add_model_try(CLI::App& model) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      model.add_subcommand("try", "Run a prepared model on one picture and say what it finds");
  command->add_option("model", flags->model, "Name, folder or manifest")->required();
  command->add_option("picture", flags->picture, "A JPEG, PNG or other picture")->required();
  command->add_option("--out", flags->out, "Picture to write, .jpg or .png, with what was found");
  command->add_option("--threshold", flags->threshold, "Score threshold; default: the model's")
      ->check(finite_number(0, 1));
  command->add_option("--iou-threshold", flags->iou_threshold, "IoU threshold, likewise")
      ->check(finite_number(0, 1));
  command->add_option("--models", flags->models, "Folder of prepared models");
  add_engine_flags(*command, flags->engine);
  return [flags] { return try_command(*flags); };
}

}  // namespace penstock
