// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/manifest_schema1.h"

#include <algorithm>

#include "penstock/base/printable.h"
#include "penstock/base/str_format.h"

namespace penstock {
namespace {

TensorSpec read_tensor(JsonObject& root, std::string_view key) {
  TensorSpec spec;
  simdjson::dom::element value;
  root.require(key, value);
  if (root.errors().first) return spec;
  JsonObject object(value, root.path_of(key), root.errors());
  object.require("name", spec.name);
  std::vector<simdjson::dom::element> shape;
  object.require("shape", shape);
  object.finish();
  if (shape.size() > kMaxManifestRank) {
    root.errors().report(ErrorKind::kCorrupt,
                         str_format("'{}' has too many dimensions", object.path_of("shape")));
    return spec;
  }
  for (std::size_t i = 0; i < shape.size(); ++i) {
    std::int64_t size = 0;
    if (!shape[i].is_int64() || shape[i].get_int64().get(size) || size < 1 ||
        size > kMaxSymbolicDimension) {
      root.errors().report(ErrorKind::kCorrupt, str_format("'{}[{}]' must be a positive integer",
                                                           object.path_of("shape"), i));
      return spec;
    }
    spec.dims.push_back(Dimension::fixed(size));
  }
  return spec;
}

}  // namespace

void check_unit_interval(JsonObject& object, std::string_view key, float value) {
  if (!(value >= 0.0f && value <= 1.0f)) {
    object.errors().report(ErrorKind::kCorrupt,
                           str_format("'{}' must be in 0..1", object.path_of(key)));
  }
}

void check_sha256(JsonErrors& errors, const std::string& field, const std::string& value) {
  const bool hex = std::ranges::all_of(
      value, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (value.size() != 64 || !hex) {
    errors.report(ErrorKind::kCorrupt, str_format("'{}' must be 64 lower-case hex digits", field));
  }
}

void check_name(JsonErrors& errors, const std::string& name) {
  if (is_printable(name)) return;
  errors.report(ErrorKind::kCorrupt,
                str_format("'name' is '{}', which has a control character", printable(name)));
}

void check_labels(JsonErrors& errors, const std::vector<std::string>& labels) {
  if (labels.size() > kMaxManifestLabels) {
    errors.report(ErrorKind::kCorrupt, str_format("'labels' has {} entries, more than {}",
                                                  labels.size(), kMaxManifestLabels));
  }
}

void read_schema1(JsonObject& root, ManifestDocument& document) {
  Manifest& manifest = document.manifest;
  JsonErrors& errors = root.errors();
  ManifestArtefact artefact{.field = "model", .is_model = true};
  root.require("name", manifest.name);
  check_name(errors, manifest.name);
  root.require("model", artefact.path);
  root.require("sha256", artefact.sha256);
  std::string arch = "any";
  root.allow("arch", arch);
  bool offload_copy = false;
  root.allow("offload_copy", offload_copy);
  manifest.inputs = {read_tensor(root, "input")};
  manifest.outputs = {read_tensor(root, "output")};
  root.require("labels", manifest.labels);
  manifest.threshold = 0.25f;
  manifest.iou_threshold = 0.45f;
  root.allow("threshold", manifest.threshold);
  root.allow("iou_threshold", manifest.iou_threshold);
  root.allow("licence", manifest.licence);
  root.finish();
  if (errors.first) return;

  check_sha256(errors, "sha256", artefact.sha256);
  check_unit_interval(root, "threshold", manifest.threshold);
  check_unit_interval(root, "iou_threshold", manifest.iou_threshold);
  check_labels(errors, manifest.labels);
  if (!artefact.path.ends_with(".onnx")) {
    errors.report(
        ErrorKind::kUnsupported,
        str_format("'model' is '{}': of schema 1, this build runs .onnx only", artefact.path));
  }
  if (arch != "any") {
    errors.report(ErrorKind::kUnsupported,
                  str_format("'arch' is '{}', but an .onnx model is for 'any'", arch));
  }
  if (offload_copy) {
    errors.report(ErrorKind::kUnsupported, "'offload_copy' must be false");
  }
  if (errors.first) return;

  TensorSpec& input = manifest.inputs.front();
  if (input.dims.size() != 4 || input.dims[1].minimum != 3) {
    errors.report(ErrorKind::kCorrupt, "'input.shape' must be [N,3,H,W]");
    return;
  }
  input.layout = TensorLayout::kNchw;
  // v8 and later: [N, 4 + classes, cells]; v5 and v7: [N, cells, 5 + classes].
  const auto& out = manifest.outputs.front().dims;
  const auto classes = static_cast<std::int64_t>(manifest.labels.size());
  if (out.size() == 3 && out[1].minimum == 4 + classes) {
    manifest.family = "yolov8";
  } else if (out.size() == 3 && out[2].minimum == 5 + classes) {
    manifest.family = "yolov5";
  } else {
    errors.report(
        ErrorKind::kCorrupt,
        str_format("'output.shape' is no YOLO head for the {} entries of 'labels'", classes));
    return;
  }
  manifest.engine = "onnxruntime";
  manifest.task = "detection";
  manifest.preprocess = {.input_name = input.name,
                         .width = static_cast<int>(input.dims[3].minimum),
                         .height = static_cast<int>(input.dims[2].minimum),
                         .scale = 1.0f / 255.0f,
                         .fit = Fit::kLetterboxCenter};
  document.artefacts = {std::move(artefact)};
}

}  // namespace penstock
