// SPDX-License-Identifier: Apache-2.0
//
// penstock model inspect NAME|FILE.onnx: what a prepared model is, or what can be told of a bare
// file and what preparing it would do.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/penstock/commands.h"
#include "apps/penstock/messages.h"
#include "apps/penstock/model_names.h"
#include "penstock/base/exit_code.h"
#include "penstock/base/json_writer.h"
#include "penstock/base/str_format.h"
#include "penstock/media/fit_text.h"
#include "penstock/model/manifest.h"
#include "penstock/model/model_info.h"
#include "penstock/model/onnx_reader.h"
#include "penstock/model/preparation.h"

namespace penstock {
namespace {

/// Of labels in the JSON; a manifest may have 65536.
constexpr std::size_t kMostNames = 1000;

struct Flags {
  std::string model, models;
  bool json = false;
};

std::string dims_text(const std::vector<Dimension>& dims) {
  std::string text = "[";
  for (const Dimension& dim : dims) {
    if (text.size() > 1) text += ",";
    text += dim.is_fixed()       ? str_format("{}", dim.minimum)
            : dim.symbol.empty() ? str_format("{}..{}", dim.minimum, dim.maximum)
                                 : str_format("{}={}..{}", dim.symbol, dim.minimum, dim.maximum);
  }
  return text + "]";
}

/// One fact a line for people, or a key for programs: both are made from the same list.
class Facts {
 public:
  explicit Facts(bool json) : json_(json) {
    if (json_) out_.open('{');
  }
  void text(const char* key, std::string_view value) {
    if (json_) return out_.key(key).string(value);
    say(str_format("{:<14} {}", key, value));
  }
  void number(const char* key, std::int64_t value) {
    if (json_) return out_.key(key).number(value);
    std::printf("%-14s %lld\n", key, static_cast<long long>(value));
  }
  void real(const char* key, float value) {
    if (json_) return out_.key(key).number(value);
    say(str_format("{:<14} {:.6g}", key, value));
  }
  /// The first `most` of them on one line, or a list.
  void names(const char* key, std::span<const std::string> values, std::size_t most) {
    if (json_) {
      out_.key(key).open('[');
      for (const std::string& value : values.first(std::min(values.size(), kMostNames))) {
        out_.string(value);
      }
      return out_.close(']');
    }
    std::string line;
    for (const std::string& value : values.first(std::min(values.size(), most))) {
      line += str_format("{}{}", line.empty() ? "" : ", ", value);
    }
    if (values.size() > most) line += str_format(" and {} more", values.size() - most);
    text(key, line);
  }
  void yes(const char* key, bool value) {
    if (json_) return out_.key(key).boolean(value);
    std::printf("%-14s %s\n", key, value ? "yes" : "no");
  }
  void list(const char* key, const std::vector<std::string>& values) {
    if (json_) {
      out_.key(key).open('[');
      for (const std::string& value : values) out_.string(value);
      return out_.close(']');
    }
    for (const std::string& value : values) say(str_format("{:<14} {}", key, value));
  }
  void finish() {
    if (!json_) return;
    out_.close('}');
    std::printf("%s", out_.take().c_str());
  }

 private:
  const bool json_;
  JsonWriter out_;
};

std::vector<std::string> tensors_text(const std::vector<TensorSpec>& specs) {
  std::vector<std::string> lines;
  for (const TensorSpec& spec : specs) {
    lines.push_back(str_format("{} {} {}", spec.name, to_string(spec.type), dims_text(spec.dims)));
  }
  return lines;
}

std::string preprocess_text(const PreprocessSpec& pre) {
  return str_format(
      "{} {}x{} {}, (level x {:.6g} - [{:.6g} {:.6g} {:.6g}]) / [{:.6g} {:.6g} {:.6g}], {}, pad "
      "{:.6g}",
      pre.order == ChannelOrder::kBgr ? "BGR" : "RGB", pre.width, pre.height, to_string(pre.layout),
      pre.scale, pre.mean[0], pre.mean[1], pre.mean[2], pre.std[0], pre.std[1], pre.std[2],
      to_string(pre.fit), pre.pad_level);
}

int inspect_prepared(const std::filesystem::path& path, bool json) {
  const auto manifest = load_manifest(path);
  if (!manifest) return report(manifest.error());
  Facts facts(json);
  facts.text("name", manifest->name);
  facts.text("folder", manifest->folder.string());
  facts.number("schema", manifest->schema);
  // load_manifest refuses a file whose hash is another.
  facts.yes("hashes_match", true);
  facts.text("sha256", manifest->artefact_sha256);
  facts.text("engine", str_format("{} {}", manifest->engine, manifest->provider));
  if (!manifest->cpu_nodes.empty()) facts.list("cpu_nodes", manifest->cpu_nodes);
  facts.text("task", manifest->task);
  facts.text("family", manifest->family);
  facts.list("inputs", tensors_text(manifest->inputs));
  facts.list("outputs", tensors_text(manifest->outputs));
  facts.text("preprocess", preprocess_text(manifest->preprocess));
  facts.number("labels", static_cast<std::int64_t>(manifest->labels.size()));
  if (!manifest->labels.empty()) facts.names("label_names", manifest->labels, 20);
  if (!manifest->keypoints.empty()) facts.list("keypoints", manifest->keypoints);
  facts.real("threshold", manifest->threshold);
  facts.real("iou_threshold", manifest->iou_threshold);
  if (manifest->family == "db-text") {
    facts.real("pixel_threshold", manifest->pixel_threshold);
    facts.real("unclip_ratio", manifest->unclip_ratio);
  }
  if (manifest->task == "classification" || manifest->task == "semantic-segmentation" ||
      manifest->task == "text-recognition") {
    facts.text("scores", manifest->scores == ScoreKind::kLogits ? "logits" : "probabilities");
  }
  std::vector<std::string> data;
  for (const ManifestData& file : manifest->data) data.push_back(file.path);
  facts.list("data", data);
  facts.text("licence", manifest->licence);
  facts.list("weaknesses", manifest->weaknesses);
  facts.finish();
  return kExitOk;
}

std::vector<std::string> values_text(const std::vector<OnnxValueInfo>& values) {
  std::vector<std::string> lines;
  for (const OnnxValueInfo& value : values) {
    lines.push_back(str_format("{} {} {}{}", value.name,
                               value.type ? to_string(*value.type) : "unknown type",
                               value.has_shape ? dims_text(value.dims) : "of unknown shape",
                               value.made_by.empty() ? "" : ", from " + value.made_by));
  }
  return lines;
}

int inspect_file(const std::filesystem::path& path, bool json) {
  const auto summary = inspect_model(path);
  if (!summary) return report(summary.error());
  Facts facts(json);
  facts.text("file", path.string());
  facts.number("opset", summary->opset);
  facts.number("ir_version", summary->ir_version);
  facts.text("producer", summary->producer);
  facts.list("inputs", values_text(summary->inputs));
  facts.list("outputs", values_text(summary->outputs));
  std::vector<std::string> keys;
  for (const auto& [key, value] : summary->metadata) keys.push_back(key);
  facts.list("metadata", keys);
  facts.list("data", summary->external_files);
  std::vector<std::string> beside;
  if (const auto infos = find_model_info(path, summary->metadata)) {
    for (const ModelInfo& info : *infos) beside.push_back(info.source);
  }
  facts.list("told_by", beside);
  const auto plan = plan_preparation(path, {});
  facts.yes("can_prepare", plan.has_value());
  facts.list("prepare", plan ? plan->notes : std::vector<std::string>{plan.error().message()});
  facts.finish();
  return kExitOk;
}

int inspect(const Flags& flags) {
  const std::filesystem::path file(flags.model);
  if (file.extension() == ".onnx") return inspect_file(file, flags.json);
  const auto path = find_named_model(flags.model, models_folder(flags.models));
  return path ? inspect_prepared(*path, flags.json) : report(path.error());
}

}  // namespace

Command add_model_inspect(CLI::App& model) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = model.add_subcommand(
      "inspect", "Say what a prepared model is, or what preparing an ONNX file would make of it");
  command->add_option("model", flags->model, "Name, folder, manifest or .onnx file")->required();
  command->add_option("--models", flags->models, "Folder of prepared models");
  command->add_flag("--json", flags->json, "As JSON");
  return [flags] { return inspect(*flags); };
}

}  // namespace penstock
