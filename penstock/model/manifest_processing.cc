// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/manifest_processing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/model/manifest_schema1.h"

namespace penstock {
namespace {

using simdjson::dom::element;

void read_channels(JsonObject& object, std::string_view key, std::array<float, 3>& values,
                   bool divisor) {
  JsonErrors& errors = object.errors();
  std::vector<element> items;
  if (!object.allow(key, items) || errors.first) return;
  if (items.size() != values.size()) {
    errors.report(ErrorKind::kCorrupt, str_format("'{}' must have 3 numbers, not {}",
                                                  object.path_of(key), items.size()));
    return;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string path = str_format("{}[{}]", object.path_of(key), i);
    const auto number = json_number(items[i], path, errors);
    if (!number) return;
    // Small enough to overflow a normalised level is as wrong as zero.
    if (divisor && !(std::abs(*number) >= 1e-6f)) {
      errors.report(ErrorKind::kCorrupt, str_format("'{}' must not be zero", path));
    }
    values[i] = *number;
  }
}

/// The preprocessing must produce the very tensor that the model's input asks for.
void check_against_input(JsonObject& object, Manifest& manifest) {
  JsonErrors& errors = object.errors();
  const PreprocessSpec& spec = manifest.preprocess;
  const auto input = std::ranges::find(manifest.inputs, spec.input_name, &TensorSpec::name);
  if (input == manifest.inputs.end()) {
    errors.report(ErrorKind::kCorrupt, str_format("'{}' is '{}', which is none of 'inputs'",
                                                  object.path_of("input"), spec.input_name));
    return;
  }
  if (input->layout != TensorLayout::kAny && input->layout != spec.layout) {
    errors.report(ErrorKind::kCorrupt, str_format("'{}' differs from the layout of input '{}'",
                                                  object.path_of("layout"), input->name));
    return;
  }
  const bool nchw = spec.layout == TensorLayout::kNchw;
  const std::array<std::pair<std::size_t, std::int64_t>, 3> wanted{
      {{nchw ? 1 : 3, 3}, {nchw ? 2 : 1, spec.height}, {nchw ? 3 : 2, spec.width}}};
  for (const auto& [axis, size] : wanted) {
    if (input->dims.size() != 4 || !input->dims[axis].accepts(size)) {
      errors.report(ErrorKind::kCorrupt,
                    str_format("'{}' makes {}x{} with 3 channels, which does not fit the dims of "
                               "input '{}'",
                               object.path_of("width"), spec.width, spec.height, input->name));
      return;
    }
  }
  if (input->type != DataType::kFloat32 && input->type != DataType::kFloat16 &&
      input->type != DataType::kUint8) {
    errors.report(ErrorKind::kUnsupported,
                  str_format("input '{}' is {}; a picture is float32, float16 or uint8",
                             input->name, to_string(input->type)));
    return;
  }
  manifest.preprocess.type = input->type;
  const bool normalises = spec.scale != 1.0f || spec.mean != std::array{0.0f, 0.0f, 0.0f} ||
                          spec.std != std::array{1.0f, 1.0f, 1.0f};
  if (input->type == DataType::kUint8 && normalises) {
    errors.report(ErrorKind::kCorrupt,
                  str_format("'{}', 'mean' or 'std' normalise, but input '{}' is uint8 and takes "
                             "the levels themselves",
                             object.path_of("scale"), input->name));
    return;
  }
}

}  // namespace

void read_preprocess(JsonObject& root, Manifest& manifest) {
  JsonErrors& errors = root.errors();
  JsonObject object = json_child(root, "preprocess");
  PreprocessSpec& spec = manifest.preprocess;
  std::string layout = "NCHW", order, fit;
  object.require("input", spec.input_name);
  object.require("width", spec.width);
  object.require("height", spec.height);
  object.allow("layout", layout);
  object.require("order", order);
  object.allow("scale", spec.scale);
  read_channels(object, "mean", spec.mean, false);
  read_channels(object, "std", spec.std, true);
  object.require("fit", fit);
  object.allow("pad", spec.pad_level);
  object.finish();
  if (errors.first) return;

  for (const auto& [key, side] :
       {std::pair("width", spec.width), std::pair("height", spec.height)}) {
    if (side < 1 || side > kMaxFrameSide) {
      errors.report(ErrorKind::kCorrupt,
                    str_format("'{}' must be in 1..{}", object.path_of(key), kMaxFrameSide));
    }
  }
  constexpr std::array<std::string_view, 2> kLayouts{"NCHW", "NHWC"};
  spec.layout = json_choose(errors, object.path_of("layout"), layout, kLayouts) == 0
                    ? TensorLayout::kNchw
                    : TensorLayout::kNhwc;
  constexpr std::array<std::string_view, 2> kOrders{"RGB", "BGR"};
  spec.order = json_choose(errors, object.path_of("order"), order, kOrders) == 0
                   ? ChannelOrder::kRgb
                   : ChannelOrder::kBgr;
  constexpr std::array<std::string_view, 3> kFits{"stretch", "letterbox-center",
                                                  "letterbox-top-left"};
  constexpr std::array kFitValues{Fit::kStretch, Fit::kLetterboxCenter, Fit::kLetterboxTopLeft};
  spec.fit = kFitValues[json_choose(errors, object.path_of("fit"), fit, kFits)];
  if (!(spec.scale > 0.0f)) {
    errors.report(ErrorKind::kCorrupt,
                  str_format("'{}' must be positive", object.path_of("scale")));
  }
  if (!(spec.pad_level >= 0.0f && spec.pad_level <= 255.0f)) {
    errors.report(ErrorKind::kCorrupt, str_format("'{}' must be in 0..255", object.path_of("pad")));
  }
  if (!errors.first) check_against_input(object, manifest);
}

void read_postprocess(JsonObject& root, Manifest& manifest) {
  JsonErrors& errors = root.errors();
  if (errors.first) return;
  const std::size_t task =
      json_choose(errors, "task", manifest.task, kTasks, ErrorKind::kUnsupported);
  const std::string_view name = kTasks[task];
  const bool boxes = task < 4;
  const bool scored =
      name == "classification" || name == "semantic-segmentation" || name == "text-recognition";
  JsonObject post = json_child(root, "postprocess");
  std::string scores = "probabilities";
  if (boxes) {
    post.require("threshold", manifest.threshold);
    post.require("iou_threshold", manifest.iou_threshold);
    post.allow("class_agnostic", manifest.class_agnostic);
  } else {
    manifest.threshold = name == "semantic-segmentation" ? 0.5f : 0.0f;
    post.allow("threshold", manifest.threshold);
  }
  if (scored) post.require("scores", scores);
  if (name == "classification") post.allow("top_k", manifest.top_k);
  if (name == "pose") post.require("keypoints", manifest.keypoints);
  if (name == "embedding") post.allow("normalise", manifest.normalise);
  if (manifest.family == "db-text") {
    post.allow("pixel_threshold", manifest.pixel_threshold);
    post.allow("unclip_ratio", manifest.unclip_ratio);
  }
  post.finish();
  if (errors.first) return;
  check_unit_interval(post, "pixel_threshold", manifest.pixel_threshold);
  if (!(manifest.unclip_ratio >= 0.0f && manifest.unclip_ratio <= kMaxUnclipRatio)) {
    errors.report(ErrorKind::kCorrupt, str_format("'{}' must be in 0..{}",
                                                  post.path_of("unclip_ratio"), kMaxUnclipRatio));
  }
  check_unit_interval(post, "threshold", manifest.threshold);
  check_unit_interval(post, "iou_threshold", manifest.iou_threshold);
  constexpr std::array<std::string_view, 2> kScores{"probabilities", "logits"};
  manifest.scores = json_choose(errors, post.path_of("scores"), scores, kScores) == 0
                        ? ScoreKind::kProbabilities
                        : ScoreKind::kLogits;
  if (manifest.top_k < 1 || manifest.top_k > kMaxTopK) {
    errors.report(ErrorKind::kCorrupt,
                  str_format("'{}' must be in 1..{}", post.path_of("top_k"), kMaxTopK));
  }
  const std::size_t keypoints = manifest.keypoints.size();
  if (name == "pose" && (keypoints < 1 || keypoints > kMaxKeypoints)) {
    errors.report(ErrorKind::kCorrupt, str_format("'{}' must name 1..{} keypoints",
                                                  post.path_of("keypoints"), kMaxKeypoints));
  }
}

}  // namespace penstock
