// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/preparation.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "penstock/base/str_format.h"
#include "penstock/model/family_guess.h"
#include "penstock/model/onnx_reader.h"

namespace penstock {
namespace {

// A batch that is open in the file is bounded here; the executor asks for the default of 8 at most.
constexpr std::int64_t kMaxBatch = 64;

std::unexpected<Error> ask(std::string what) {
  return fail(ErrorKind::kUnsupported, std::move(what));
}

class Planner {
 public:
  Planner(const OnnxSummary& summary, const PrepareOptions& options, Preparation& plan)
      : summary_(summary), options_(options), plan_(plan), manifest_(plan.manifest) {}

  Result<void> run() {
    manifest_.engine = "onnxruntime";
    manifest_.task = "detection";
    PENSTOCK_TRY(take_tensors());
    PENSTOCK_TRY(take_size());
    take_labels();
    PENSTOCK_TRY(take_family());
    PENSTOCK_TRY(take_normalisation());
    take_rest();
    return {};
  }

 private:
  void note(std::string text) { plan_.notes.push_back(std::move(text)); }

  const std::string* metadata(std::string_view key) const {
    const auto found = std::ranges::find(
        summary_.metadata, key, [](const auto& e) -> const std::string& { return e.first; });
    return found == summary_.metadata.end() ? nullptr : &found->second;
  }

  Result<TensorSpec> to_spec(const OnnxValueInfo& info, const char* side) const {
    if (!info.type)
      return ask(str_format("{} '{}' has a type that is not supported", side, info.name));
    if (!info.has_shape) {
      return ask(str_format("{} '{}' has no shape in the file; export the model with shapes", side,
                            info.name));
    }
    TensorSpec spec{.name = info.name, .type = *info.type, .dims = info.dims};
    if (!spec.dims.empty() && !spec.dims[0].is_fixed()) {
      spec.dims[0].maximum = std::min(spec.dims[0].maximum, kMaxBatch);
    }
    return spec;
  }

  Result<void> take_tensors() {
    if (summary_.inputs.size() != 1) {
      return ask(
          str_format("the model has {} inputs; only models with one, the picture, can be prepared",
                     summary_.inputs.size()));
    }
    for (const OnnxValueInfo& info : summary_.inputs) {
      auto spec = to_spec(info, "input");
      if (!spec) return std::unexpected(spec.error());
      manifest_.inputs.push_back(*std::move(spec));
    }
    for (const OnnxValueInfo& info : summary_.outputs) {
      auto spec = to_spec(info, "output");
      if (!spec) return std::unexpected(spec.error());
      manifest_.outputs.push_back(*std::move(spec));
    }
    const TensorSpec& input = manifest_.inputs[0];
    if (input.type != DataType::kFloat32) {
      return ask(str_format("input '{}' is {}; float32 pictures only so far", input.name,
                            to_string(input.type)));
    }
    return {};
  }

  /// Layout and size of the picture; open sides are fixed to what the user or the metadata says.
  Result<void> take_size() {
    TensorSpec& input = manifest_.inputs[0];
    if (input.dims.size() != 4) {
      return ask(str_format("input '{}' has {} dimensions; a picture has four", input.name,
                            input.dims.size()));
    }
    const auto is_three = [](const Dimension& d) { return d.is_fixed() && d.minimum == 3; };
    const bool nchw = is_three(input.dims[1]);
    if (!nchw && !is_three(input.dims[3])) {
      return ask(str_format("input '{}' is neither [N,3,H,W] nor [N,H,W,3]", input.name));
    }
    input.layout = nchw ? TensorLayout::kNchw : TensorLayout::kNhwc;
    PreprocessSpec& pre = manifest_.preprocess;
    pre.input_name = input.name;
    pre.layout = input.layout;
    const auto sizes = image_size();
    const std::size_t first = nchw ? 2 : 1;
    PENSTOCK_TRY(take_side(input.dims[first], "height", options_.height, sizes.first, pre.height));
    PENSTOCK_TRY(
        take_side(input.dims[first + 1], "width", options_.width, sizes.second, pre.width));
    note(str_format("input: '{}', {}, {}x{} (from the file's shapes{})", input.name,
                    nchw ? "NCHW" : "NHWC", pre.width, pre.height,
                    options_.width || options_.height ? " and flags" : ""));
    return {};
  }

  Result<void> take_side(Dimension& dim, const char* name, std::optional<int> given,
                         std::optional<int> stated, int& side) {
    if (dim.is_fixed()) {
      if (given && *given != dim.minimum) {
        return fail(ErrorKind::kInvalidArgument,
                    str_format("--{} is {}, but the model's is {}", name, *given, dim.minimum));
      }
      if (dim.minimum > kMaxFrameSide)
        return ask(str_format("{} {} is too large", name, dim.minimum));
      side = static_cast<int>(dim.minimum);
      return {};
    }
    const auto wanted = given ? given : stated;
    if (!wanted) return ask(str_format("the model leaves its {0} open; give --{0}", name));
    if (!dim.accepts(*wanted) || *wanted > kMaxFrameSide) {
      return fail(ErrorKind::kInvalidArgument, str_format("{} {} is out of range", name, *wanted));
    }
    side = *wanted;
    dim = Dimension::fixed(side);
    return {};
  }

  /// Height and width of Ultralytics' "imgsz", "[640, 640]".
  std::pair<std::optional<int>, std::optional<int>> image_size() const {
    const std::string* text = metadata("imgsz");
    const auto sides = text == nullptr ? std::vector<int>{} : integers_in(*text);
    if (sides.size() != 2) return {};
    return {sides[0], sides[1]};
  }

  void take_labels() {
    if (!options_.labels.empty()) {
      manifest_.labels = options_.labels;
      note(str_format("labels: {} (given)", manifest_.labels.size()));
      return;
    }
    const std::string* names = metadata("names");
    if (names == nullptr) return;
    manifest_.labels = labels_of_dictionary(*names);
    if (!manifest_.labels.empty()) {
      note(str_format("labels: {} (metadata 'names')", manifest_.labels.size()));
    }
  }

  Result<void> take_family() {
    const GuessInput input{.width = manifest_.preprocess.width,
                           .height = manifest_.preprocess.height,
                           .labels = manifest_.labels.size(),
                           .outputs = manifest_.outputs};
    const auto guess = guess_family(input);
    if (options_.family) {
      manifest_.family = *options_.family;
      note(str_format("family: {} (given)", manifest_.family));
    } else if (guess) {
      manifest_.family = guess->family;
      note(str_format("family: {} ({})", guess->family, guess->reason));
    } else {
      return ask(str_format("{}; if you know its family, give --family", guess.error().message()));
    }
    if (manifest_.labels.empty()) {
      const std::size_t classes = guess && guess->family == manifest_.family ? guess->classes : 0;
      if (classes == 0) return ask("the file names no labels; give --labels FILE, one name a line");
      for (std::size_t i = 0; i < classes; ++i)
        manifest_.labels.push_back(str_format("class {}", i));
      note(str_format("labels: none in the file, so 'class 0' to 'class {}'; give --labels FILE",
                      classes - 1));
    }
    return {};
  }

  Result<void> take_normalisation() {
    PreprocessSpec& pre = manifest_.preprocess;
    const auto known = family_preprocess(manifest_.family);
    if (!known && !(options_.order && options_.scale && options_.fit)) {
      return ask(
          str_format("models of family '{}' differ in what they take; give --order, --scale (and "
                     "--mean, --std) and --fit",
                     manifest_.family));
    }
    if (known) {
      pre.order = known->order;
      pre.scale = known->scale;
      pre.mean = known->mean;
      pre.std = known->std;
      pre.fit = known->fit;
      note(str_format("preprocessing: {}, level x {:.6g}, {} (usual for {})",
                      pre.order == ChannelOrder::kBgr ? "BGR" : "RGB", pre.scale,
                      pre.fit == Fit::kStretch ? "stretched" : "letterboxed", manifest_.family));
    }
    if (options_.order) pre.order = *options_.order;
    if (options_.scale) pre.scale = *options_.scale;
    if (options_.mean) pre.mean = *options_.mean;
    if (options_.std) pre.std = *options_.std;
    if (options_.fit) pre.fit = *options_.fit;
    if (options_.pad) pre.pad_level = *options_.pad;
    for (const float deviation : pre.std) {
      if (!(deviation > 0)) return fail(ErrorKind::kInvalidArgument, "--std must be above 0");
    }
    if (!(pre.scale > 0)) return fail(ErrorKind::kInvalidArgument, "--scale must be above 0");
    if (!(pre.pad_level >= 0 && pre.pad_level <= 255)) {
      return fail(ErrorKind::kInvalidArgument, "--pad must be within 0..255");
    }
    return {};
  }

  void take_rest() {
    manifest_.threshold = options_.threshold.value_or(0.25f);
    manifest_.iou_threshold = options_.iou_threshold.value_or(0.45f);
    note(str_format("thresholds: score {:.6g}, IoU {:.6g}{}", manifest_.threshold,
                    manifest_.iou_threshold,
                    options_.threshold || options_.iou_threshold ? "" : " (defaults)"));
    const std::string* licence = metadata("license");
    if (!options_.licence.empty()) {
      plan_.spdx = options_.licence;
      plan_.confidence = "given by who prepared the model";
    } else if (licence != nullptr && !licence->empty()) {
      plan_.spdx = *licence;
      plan_.confidence = "the file's own word";
    } else {
      plan_.spdx = "NOASSERTION";
      plan_.confidence = "none: neither the file nor a flag says";
    }
    note(str_format("licence: {} ({})", plan_.spdx, plan_.confidence));
  }

  const OnnxSummary& summary_;
  const PrepareOptions& options_;
  Preparation& plan_;
  Manifest& manifest_;
};

}  // namespace

Result<Preparation> plan_preparation(const std::filesystem::path& onnx,
                                     const PrepareOptions& options) {
  const auto where = [&] { return str_format("preparing '{}'", onnx.string()); };
  auto summary = inspect_model(onnx);
  if (!summary) return std::unexpected(std::move(summary).error().context(where()));
  Preparation plan{.file = onnx};
  plan.manifest.name = options.name.empty() ? onnx.stem().string() : options.name;
  plan.data = summary->external_files;
  if (plan.manifest.name.empty() || plan.manifest.name.size() > 128 || plan.manifest.name == "." ||
      plan.manifest.name == ".." || plan.manifest.name.find('/') != std::string::npos) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("'{}' is no name for a model; give --name", plan.manifest.name));
  }
  if (auto planned = Planner(*summary, options, plan).run(); !planned) {
    return std::unexpected(std::move(planned).error().context(where()));
  }
  return plan;
}

}  // namespace penstock
