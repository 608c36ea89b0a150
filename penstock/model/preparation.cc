// SPDX-License-Identifier: Apache-2.0
//
// plan_preparation, and its steps up to the picture's size.
#include "penstock/model/preparation.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "penstock/base/printable.h"
#include "penstock/base/str_format.h"
#include "penstock/model/preparation_plan.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

// A batch that is open in the file is bounded here; the executor asks for the default of 8 at most.
constexpr std::int64_t kMaxBatch = 64;

Result<TensorSpec> to_spec(const OnnxValueInfo& info, const char* side) {
  if (!info.type)
    return ask(str_format("{} '{}' has a type that is not supported", side, info.name));
  if (!info.has_shape) {
    return ask(str_format("{} '{}' has no shape in the file; export the model with shapes", side,
                          info.name));
  }
  TensorSpec spec{.name = info.name, .type = *info.type, .dims = info.dims};
  return spec;
}

/// An open batch is bounded, and with it what has the same symbol; other open sides, such as a
/// number of boxes, are not.
void bound_batch(Manifest& manifest) {
  const TensorSpec& picture = manifest.inputs.front();
  if (picture.dims.empty() || picture.dims[0].is_fixed()) return;
  const std::string symbol = picture.dims[0].symbol;
  for (auto* side : {&manifest.inputs, &manifest.outputs}) {
    for (TensorSpec& spec : *side) {
      const bool is_picture = &spec == &manifest.inputs.front();
      for (Dimension& dim : spec.dims) {
        const bool is_batch = (is_picture && &dim == &spec.dims[0]) ||
                              (!symbol.empty() && !dim.is_fixed() && dim.symbol == symbol);
        if (is_batch) dim.maximum = std::min(dim.maximum, kMaxBatch);
      }
    }
  }
}

bool is_three(const Dimension& dim) { return dim.is_fixed() && dim.minimum == 3; }

bool may_be_picture(const TensorSpec& spec) {
  return spec.dims.size() == 4 && (is_three(spec.dims[1]) || is_three(spec.dims[3]));
}

/// Data files must lie in the model's folder, also behind links: others are not the model's.
Result<void> check_data(const fs::path& model, const std::string& relative) {
  std::error_code error;
  const fs::path folder = fs::canonical(fs::absolute(model).parent_path(), error);
  if (error) return {};  // Reading the model tells it better.
  const fs::path target = fs::canonical(folder / relative, error);
  if (error) {
    return fail(ErrorKind::kNotFound, str_format("cannot read the model's data file '{}': {}",
                                                 relative, error.message()));
  }
  const fs::path inside = target.lexically_relative(folder);
  if (!inside.empty() && *inside.begin() != "..") return {};
  return fail(ErrorKind::kCorrupt,
              str_format("the model's data file '{}' leads out of its folder, to '{}'; put a copy "
                         "beside the model",
                         relative, target.string()));
}

/// Each file once, however the model writes its name.
std::vector<std::string> data_files(const OnnxSummary& summary) {
  std::set<std::string> files;
  for (const std::string& location : summary.external_files) {
    files.insert(fs::path(location).lexically_normal().string());
  }
  return {files.begin(), files.end()};
}

Result<void> hash_files(Preparation& plan) {
  for (const std::string& relative : plan.data) {
    PENSTOCK_TRY(check_data(plan.file, relative));
    auto hash = sha256_file(plan.file.parent_path() / relative);
    if (!hash) return std::unexpected(std::move(hash).error());
    plan.data_sha256[relative] = *std::move(hash);
  }
  return {};
}

/// Names go to terminals and into paths; what begins with a dot is a folder in the making.
bool is_model_name(const std::string& name) {
  return !name.empty() && name.size() <= 128 && !name.starts_with('.') &&
         name.find('/') == std::string::npos && is_printable(name);
}

/// The picture first; every other input has its constant.
Result<void> take_inputs(PlanState& state) {
  std::vector<TensorSpec> pictures, others;
  for (const OnnxValueInfo& info : state.summary.inputs) {
    auto spec = to_spec(info, "input");
    if (!spec) return std::unexpected(spec.error());
    const bool is_picture = may_be_picture(*spec) || state.summary.inputs.size() == 1;
    (is_picture ? pictures : others).push_back(*std::move(spec));
  }
  if (pictures.size() != 1) {
    return ask(
        str_format("the model has {} inputs, of which {} can be a picture ([N,3,H,W] or "
                   "[N,H,W,3]); exactly one must be",
                   state.summary.inputs.size(), pictures.size()));
  }
  const TensorSpec& picture = pictures.front();
  if (picture.type != DataType::kFloat32 && picture.type != DataType::kFloat16 &&
      picture.type != DataType::kUint8) {
    return ask(str_format("input '{}' is {}; pictures are float32, float16 or uint8", picture.name,
                          to_string(picture.type)));
  }
  const auto& constants = state.options.constants;
  for (const TensorSpec& spec : others) {
    const auto given = std::ranges::find(constants, spec.name, &InputConstant::input);
    if (given == constants.end()) {
      ask_later(state, str_format("input '{}' is not the picture; give --constant {}=NUMBER,... "
                                  "for what it gets in every run",
                                  spec.name, spec.name));
      continue;
    }
    state.note(
        str_format("input: '{}' always gets {} numbers (given)", spec.name, given->values.size()));
  }
  for (const InputConstant& constant : constants) {
    if (!std::ranges::contains(others, constant.input, &TensorSpec::name)) {
      return contradiction(
          str_format("--constant: the model has no input '{}' beside the picture", constant.input));
    }
  }
  state.manifest().inputs = std::move(pictures);
  state.manifest().preprocess.type = state.manifest().inputs.front().type;
  std::ranges::move(others, std::back_inserter(state.manifest().inputs));
  state.manifest().constants = constants;
  return {};
}

Result<void> take_outputs(PlanState& state) {
  const auto& wanted = state.options.outputs;
  for (const std::string& name : wanted) {
    if (std::ranges::find(state.summary.outputs, name, &OnnxValueInfo::name) ==
        state.summary.outputs.end()) {
      return contradiction(str_format("--outputs: the model has no output '{}'", name));
    }
  }
  for (const OnnxValueInfo& info : state.summary.outputs) {
    if (!wanted.empty() && std::ranges::find(wanted, info.name) == wanted.end()) continue;
    auto spec = to_spec(info, "output");
    if (!spec) return std::unexpected(spec.error());
    state.manifest().outputs.push_back(*std::move(spec));
    state.made_by.push_back(info.made_by);
  }
  return {};
}

/// The tensor of the model that a file's group is about: by name, or the only one of its side.
const TensorSpec* find_tensor(const Manifest& manifest, const ModelInfo& info,
                              const ModelInfoTensor& tensor) {
  for (const auto* side : {&manifest.inputs, &manifest.outputs}) {
    const auto found = std::ranges::find(*side, tensor.name, &TensorSpec::name);
    if (found != side->end()) return &*found;
  }
  if (!tensor.is_input) return nullptr;
  const auto& side = *tensor.is_input ? manifest.inputs : manifest.outputs;
  const auto groups = std::ranges::count(info.tensors, tensor.is_input, &ModelInfoTensor::is_input);
  return side.size() == 1 && groups == 1 ? &side.front() : nullptr;
}

Result<void> check_tensor(const ModelInfo& info, const ModelInfoTensor& tensor,
                          const TensorSpec& spec) {
  const auto differs = [&](std::string_view what, const std::string& said, const std::string& is) {
    return contradiction(str_format("{} says that {} of '{}' is {}, but the model's is {}",
                                    info.source, what, spec.name, said, is));
  };
  if (tensor.type && *tensor.type != spec.type) {
    return differs("the type", std::string(to_string(*tensor.type)),
                   std::string(to_string(spec.type)));
  }
  if (tensor.dims.empty()) return {};
  bool fits = tensor.dims.size() == spec.dims.size();
  for (std::size_t i = 0; fits && i < spec.dims.size(); ++i) {
    fits = tensor.dims[i] < 0 || spec.dims[i].accepts(tensor.dims[i]);
  }
  if (fits) return {};
  Shape dims;
  for (const Dimension& dim : spec.dims) dims.push_back(dim.is_fixed() ? dim.minimum : -1);
  return differs("the shape", to_string(tensor.dims), to_string(dims));
}

/// What dims-order says: "col-major" is planes, as those of a planar picture. "row-major" is what
/// holds for GStreamer where nothing is said, so it contradicts no shape; where the shape leaves it
/// open, who says it means values that lie together.
Result<void> take_order(PlanState& state, const ModelInfo& info, const ModelInfoTensor& tensor,
                        const TensorSpec& spec) {
  if (tensor.dims_order.empty()) return {};
  const bool planes = tensor.dims_order == "col-major";
  const TensorLayout layout = planes ? TensorLayout::kNchw : TensorLayout::kNhwc;
  const auto& outputs = state.manifest().outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (&outputs[i] != &spec) continue;
    state.layouts[i] = layout;
    state.layouts_from = info.source;
    return {};
  }
  if (&spec != &state.manifest().inputs.front()) {
    state.note(str_format("not used: [{}] dims-order ({})", tensor.name, info.source));
    return {};
  }
  state.picture_layout = layout;
  if (!planes || spec.dims.size() != 4 || is_three(spec.dims[1])) return {};
  return contradiction(
      str_format("{} says that '{}' is col-major, which a picture [N,3,H,W] is, but "
                 "the model's has its channels last",
                 info.source, spec.name));
}

/// What files beside the model say of its tensors must be so.
Result<void> check_infos(PlanState& state) {
  state.layouts.assign(state.manifest().outputs.size(), TensorLayout::kAny);
  for (const ModelInfo& info : state.infos) {
    for (const ModelInfoTensor& tensor : info.tensors) {
      const TensorSpec* spec = find_tensor(state.manifest(), info, tensor);
      if (spec == nullptr && !state.options.outputs.empty() && tensor.is_input == false) continue;
      if (spec == nullptr) {
        return contradiction(str_format("{} is about a tensor '{}', which the model has not",
                                        info.source, tensor.name));
      }
      PENSTOCK_TRY(check_tensor(info, tensor, *spec));
      PENSTOCK_TRY(take_order(state, info, tensor, *spec));
    }
  }
  return {};
}

/// A side that nobody states stays 0 and open, which the steps after it take as not known.
Result<void> take_side(const PlanState& state, Dimension& dim, const char* name,
                       const Stated<int>& said, int& side) {
  if (dim.is_fixed()) {
    if (said && said.is_flag && *said != dim.minimum) {
      return contradiction(
          str_format("--{} is {}, but the model's is {}", name, *said, dim.minimum));
    }
    if (dim.minimum < 1 || dim.minimum > kMaxFrameSide)
      return ask(str_format("{} {} is out of range", name, dim.minimum));
    side = static_cast<int>(dim.minimum);
    return {};
  }
  if (!said) return {};
  if (!dim.accepts(*said) || *said > kMaxFrameSide) {
    return contradiction(str_format("{} {} ({}) is out of range", name, *said, said.source));
  }
  const Stated<int>& stride = state.said.stride;
  if (stride && *said % *stride != 0) {
    return contradiction(str_format("{} {} ({}) is no multiple of {} ({})", name, *said,
                                    said.source, *stride, stride.source));
  }
  side = *said;
  dim = Dimension::fixed(side);
  return {};
}

/// What is asked or refused may come of a wrong guess, which the user can't see otherwise.
std::string guess_remark(const PlanState& state) {
  if (state.guess.family.empty() || (state.said.family && state.said.family.is_flag)) return {};
  return str_format("; family '{}' is a guess ({}): if it is wrong, give --family",
                    state.guess.family, state.guess.reason);
}

/// The error of a step behind what the steps before it have to ask for, of which it may come.
Error with_questions(const PlanState& state, Error error) {
  const std::string remark = guess_remark(state);
  if (state.missing.empty()) {
    return remark.empty() ? error : Error(error.kind(), error.message() + remark);
  }
  return {ErrorKind::kInvalidArgument,
          str_format("{}; besides, {}{}", state.missing, error.message(), remark)};
}

}  // namespace

Result<void> plan_tensors(PlanState& state) {
  PENSTOCK_TRY(take_inputs(state));
  PENSTOCK_TRY(take_outputs(state));
  bound_batch(state.manifest());
  return check_infos(state);
}

Result<void> plan_size(PlanState& state) {
  TensorSpec& input = state.manifest().inputs[0];
  if (input.dims.size() != 4) {
    return ask(str_format("input '{}' has {} dimensions; a picture has four", input.name,
                          input.dims.size()));
  }
  const bool first_is_three = is_three(input.dims[1]), last_is_three = is_three(input.dims[3]);
  const bool nchw =
      first_is_three && !(last_is_three && state.picture_layout == TensorLayout::kNhwc);
  if (!first_is_three && !last_is_three) {
    return ask(str_format("input '{}' is neither [N,3,H,W] nor [N,H,W,3]", input.name));
  }
  input.layout = nchw ? TensorLayout::kNchw : TensorLayout::kNhwc;
  PreprocessSpec& pre = state.manifest().preprocess;
  pre.input_name = input.name;
  pre.layout = input.layout;
  const std::size_t first = nchw ? 2 : 1;
  const bool open = !input.dims[first].is_fixed() || !input.dims[first + 1].is_fixed();
  std::string missing;
  if (!input.dims[first + 1].is_fixed() && !state.said.width) missing += " --width";
  if (!input.dims[first].is_fixed() && !state.said.height) missing += " --height";
  if (!missing.empty()) {
    ask_later(state, str_format("the model leaves the picture's size open; give{}", missing));
  }
  PENSTOCK_TRY(take_side(state, input.dims[first], "height", state.said.height, pre.height));
  PENSTOCK_TRY(take_side(state, input.dims[first + 1], "width", state.said.width, pre.width));
  if (!missing.empty()) return {};
  state.note(str_format(
      "input: '{}', {}, {}x{} (from the file's shapes{})", input.name, nchw ? "NCHW" : "NHWC",
      pre.width, pre.height,
      open ? str_format(" and {}", state.said.height.source.empty() ? state.said.width.source
                                                                    : state.said.height.source)
           : ""));
  return {};
}

Result<Preparation> plan_preparation(const std::filesystem::path& onnx,
                                     const PrepareOptions& options) {
  const auto where = [&] { return str_format("preparing '{}'", onnx.string()); };
  // First, so that a file that changes meanwhile is not the one that is planned.
  auto hash = sha256_file(onnx);
  if (!hash) return std::unexpected(std::move(hash).error().context(where()));
  auto summary = inspect_model(onnx);
  if (!summary) return std::unexpected(std::move(summary).error().context(where()));
  Preparation plan{.file = onnx};
  plan.model_sha256 = *std::move(hash);
  plan.manifest.name = options.name.empty() ? onnx.stem().string() : options.name;
  plan.data = data_files(*summary);
  if (!is_model_name(plan.manifest.name)) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("'{}' is no name for a model; give --name", plan.manifest.name));
  }
  if (auto hashed = hash_files(plan); !hashed) {
    return std::unexpected(std::move(hashed).error().context(where()));
  }
  auto infos = find_model_info(onnx, summary->metadata);
  if (!infos) return std::unexpected(std::move(infos).error().context(where()));
  auto said = gather_statements(options, *infos, *summary);
  if (!said) return std::unexpected(std::move(said).error().context(where()));
  PlanState state{
      .summary = *summary, .options = options, .infos = *infos, .said = *said, .plan = plan};
  for (const auto step : {plan_engine, plan_tensors, plan_size, plan_family, plan_labels, plan_task,
                          plan_normalisation}) {
    if (auto done = step(state); !done) {
      return std::unexpected(with_questions(state, std::move(done).error()).context(where()));
    }
  }
  if (!state.missing.empty()) {
    return std::unexpected(
        Error(ErrorKind::kInvalidArgument, state.missing + guess_remark(state)).context(where()));
  }
  plan_licence(state);
  for (const std::string& note : said->notes) state.note(note);
  return plan;
}

}  // namespace penstock
