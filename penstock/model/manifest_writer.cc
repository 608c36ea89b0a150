// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/manifest_writer.h"

#include <string_view>

#include "penstock/base/json_writer.h"
#include "penstock/media/fit_text.h"

namespace penstock {
namespace {

void write_dimension(JsonWriter& out, const Dimension& dim) {
  if (dim.is_fixed()) return out.number(dim.minimum);
  out.open('{');
  out.key("min").number(dim.minimum);
  out.key("max").number(dim.maximum);
  if (!dim.symbol.empty()) out.key("symbol").string(dim.symbol);
  out.close('}');
}

void write_tensors(JsonWriter& out, std::span<const TensorSpec> specs) {
  out.open('[');
  for (const TensorSpec& spec : specs) {
    out.open('{');
    out.key("name").string(spec.name);
    out.key("type").string(to_string(spec.type));
    if (spec.layout != TensorLayout::kAny) out.key("layout").string(to_string(spec.layout));
    out.key("dims").open('[');
    for (const Dimension& dim : spec.dims) write_dimension(out, dim);
    out.close(']');
    out.close('}');
  }
  out.close(']');
}

void write_preprocess(JsonWriter& out, const PreprocessSpec& spec) {
  out.open('{');
  out.key("input").string(spec.input_name);
  out.key("width").number(spec.width);
  out.key("height").number(spec.height);
  out.key("layout").string(spec.layout == TensorLayout::kNhwc ? "NHWC" : "NCHW");
  out.key("order").string(spec.order == ChannelOrder::kBgr ? "BGR" : "RGB");
  out.key("scale").number(spec.scale);
  for (const auto& [name, values] : {std::pair{"mean", &spec.mean}, {"std", &spec.std}}) {
    out.key(name).open('[');
    for (const float value : *values) out.number(value);
    out.close(']');
  }
  out.key("fit").string(to_string(spec.fit));
  out.key("pad").number(spec.pad_level);
  out.close('}');
}

/// What the reader wants of the task, and no more.
void write_postprocess(JsonWriter& out, const Manifest& manifest) {
  const std::string_view task = manifest.task;
  out.key("threshold").number(manifest.threshold);
  if (task == "detection" || task == "instance-segmentation" || task == "pose" ||
      task == "oriented-detection") {
    out.key("iou_threshold").number(manifest.iou_threshold);
    if (manifest.class_agnostic) out.key("class_agnostic").boolean(true);
  }
  if (manifest.family == "db-text") {
    out.key("pixel_threshold").number(manifest.pixel_threshold);
    out.key("unclip_ratio").number(manifest.unclip_ratio);
  }
  if (task == "classification" || task == "semantic-segmentation" || task == "text-recognition") {
    out.key("scores").string(manifest.scores == ScoreKind::kLogits ? "logits" : "probabilities");
  }
  if (task == "classification") out.key("top_k").number(manifest.top_k);
  if (task == "pose") {
    out.key("keypoints").open('[');
    for (const std::string& name : manifest.keypoints) out.string(name);
    out.close(']');
  }
  if (task == "embedding") out.key("normalise").boolean(manifest.normalise);
}

}  // namespace

std::string to_manifest_json(const Manifest& manifest, std::span<const ManifestArtefact> artefacts,
                             const std::string& spdx, const std::string& confidence) {
  JsonWriter out;
  out.open('{');
  out.key("schema").number(2);
  out.key("name").string(manifest.name);
  out.key("artefacts").open('[');
  for (const ManifestArtefact& artefact : artefacts) {
    out.open('{');
    out.key("path").string(artefact.path);
    out.key("sha256").string(artefact.sha256);
    out.key("role").string(artefact.is_model ? "model" : "data");
    out.close('}');
  }
  out.close(']');
  out.key("engine").open('{');
  out.key("name").string(manifest.engine);
  out.key("provider").string(manifest.provider);
  if (!manifest.provider_options.empty()) {
    out.key("provider_options").open('{');
    for (const auto& [key, value] : manifest.provider_options) out.key(key).string(value);
    out.close('}');
  }
  if (!manifest.cpu_nodes.empty()) {
    out.key("cpu_nodes").open('[');
    for (const std::string& name : manifest.cpu_nodes) out.string(name);
    out.close(']');
  }
  out.close('}');
  out.key("inputs");
  write_tensors(out, manifest.inputs);
  out.key("outputs");
  write_tensors(out, manifest.outputs);
  out.key("task").string(manifest.task);
  out.key("family").string(manifest.family);
  out.key("classes").number(static_cast<std::uint64_t>(manifest.labels.size()));
  out.key("labels").open('[');
  for (const std::string& label : manifest.labels) out.string(label);
  out.close(']');
  out.key("preprocess");
  write_preprocess(out, manifest.preprocess);
  if (!manifest.constants.empty()) {
    out.key("constants").open('[');
    for (const InputConstant& constant : manifest.constants) {
      out.open('{');
      out.key("input").string(constant.input);
      out.key("values").open('[');
      for (const double value : constant.values) out.number(value);
      out.close(']');
      out.close('}');
    }
    out.close(']');
  }
  out.key("postprocess").open('{');
  write_postprocess(out, manifest);
  out.close('}');
  out.key("licence").open('{');
  out.key("spdx").string(spdx);
  out.key("confidence").string(confidence);
  out.close('}');
  out.close('}');
  return out.take();
}

}  // namespace penstock
