// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/manifest_parser.h"

#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <span>

#include "penstock/base/str_format.h"
#include "penstock/model/json_object.h"
#include "penstock/model/manifest_schema1.h"

namespace penstock {
namespace {

using simdjson::dom::element;

/// The largest side that contract V03 admits.
constexpr int kMaxSide = 32766;

constexpr std::array<std::string_view, 1> kEngines{"onnxruntime"};
constexpr std::array<std::string_view, 9> kProviders{
    "CPUExecutionProvider",      "CUDAExecutionProvider",     "TensorrtExecutionProvider",
    "MIGraphXExecutionProvider", "OpenVINOExecutionProvider", "VitisAIExecutionProvider",
    "XnnpackExecutionProvider",  "DnnlExecutionProvider",     "WebGpuExecutionProvider"};
constexpr std::array<DataType, 8> kTypes{DataType::kFloat32, DataType::kFloat16, DataType::kFloat64,
                                         DataType::kUint8,   DataType::kInt8,    DataType::kInt32,
                                         DataType::kInt64,   DataType::kBool};

std::string list(std::span<const std::string_view> names) {
  std::string out;
  for (const std::string_view name : names) {
    if (!out.empty()) out += ", ";
    out += name;
  }
  return out;
}

/// Index of `value` in `names`; an error that lists them otherwise.
std::size_t choose(JsonErrors& errors, const std::string& path, std::string_view value,
                   std::span<const std::string_view> names, ErrorKind kind = ErrorKind::kCorrupt) {
  const auto found = std::ranges::find(names, value);
  if (found == names.end()) {
    errors.report(kind, str_format("'{}' is '{}'; known are: {}", path, value, list(names)));
    return 0;
  }
  return static_cast<std::size_t>(found - names.begin());
}

JsonObject child(JsonObject& parent, std::string_view key) {
  element value;
  parent.require(key, value);
  return parent.errors().first ? JsonObject(parent.path_of(key), parent.errors())
                               : JsonObject(value, parent.path_of(key), parent.errors());
}

Dimension read_dimension(element value, const std::string& path, JsonErrors& errors) {
  Dimension dim{1, kMaxSymbolicDimension, {}};
  std::int64_t fixed = 0;
  std::string_view symbol;
  if (value.is_int64() && !value.get_int64().get(fixed)) {
    dim = Dimension::fixed(fixed);
  } else if (!value.get_string().get(symbol)) {
    if (auto text = json_string(value, path, errors)) dim.symbol = std::move(*text);
    if (dim.symbol.empty()) {
      errors.report(ErrorKind::kCorrupt, str_format("'{}' is an empty symbol", path));
    }
  } else if (value.is_object()) {
    JsonObject range(value, path, errors);
    range.require("min", dim.minimum);
    range.require("max", dim.maximum);
    range.allow("symbol", dim.symbol);
    range.finish();
  } else {
    errors.report(ErrorKind::kCorrupt,
                  str_format("'{}' must be a size, a symbol or {{min, max, symbol}}", path));
  }
  if (dim.minimum < 1 || dim.maximum < dim.minimum || dim.maximum > kMaxSymbolicDimension) {
    errors.report(ErrorKind::kCorrupt, str_format("'{}' must be within 1..{}, smallest first", path,
                                                  kMaxSymbolicDimension));
  }
  return dim;
}

std::vector<TensorSpec> read_tensors(JsonObject& root, std::string_view key) {
  JsonErrors& errors = root.errors();
  std::vector<element> items;
  root.require(key, items);
  if (!errors.first && (items.empty() || items.size() > kMaxManifestTensors)) {
    errors.report(ErrorKind::kCorrupt,
                  str_format("'{}' must name 1..{} tensors", key, kMaxManifestTensors));
  }
  std::vector<TensorSpec> specs;
  std::set<std::string> names;
  for (std::size_t i = 0; i < items.size() && !errors.first; ++i) {
    JsonObject object(items[i], str_format("{}[{}]", key, i), errors);
    TensorSpec spec;
    std::string type, layout = "any";
    std::vector<element> dims;
    object.require("name", spec.name);
    object.require("type", type);
    object.allow("layout", layout);
    object.require("dims", dims);
    object.finish();
    if (errors.first) break;
    if (spec.name.empty() || !names.insert(spec.name).second) {
      errors.report(ErrorKind::kCorrupt, str_format("'{}' is empty or given twice: '{}'",
                                                    object.path_of("name"), spec.name));
    }
    std::array<std::string_view, kTypes.size()> type_names;
    std::ranges::transform(kTypes, type_names.begin(), [](DataType t) { return to_string(t); });
    spec.type = kTypes[choose(errors, object.path_of("type"), type, type_names)];
    constexpr std::array<std::string_view, 3> kLayouts{"any", "NCHW", "NHWC"};
    constexpr std::array kLayoutValues{TensorLayout::kAny, TensorLayout::kNchw,
                                       TensorLayout::kNhwc};
    spec.layout = kLayoutValues[choose(errors, object.path_of("layout"), layout, kLayouts)];
    if (dims.size() > kMaxManifestRank) {
      errors.report(ErrorKind::kCorrupt, str_format("'{}' has more than {} dimensions",
                                                    object.path_of("dims"), kMaxManifestRank));
      break;
    }
    for (std::size_t d = 0; d < dims.size(); ++d) {
      spec.dims.push_back(
          read_dimension(dims[d], str_format("{}[{}]", object.path_of("dims"), d), errors));
    }
    if (spec.layout != TensorLayout::kAny && spec.dims.size() != 4) {
      errors.report(ErrorKind::kCorrupt,
                    str_format("'{}' is {} but has {} dimensions, not 4", object.path_of("layout"),
                               layout, spec.dims.size()));
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

void read_artefacts(JsonObject& root, ManifestDocument& document) {
  JsonErrors& errors = root.errors();
  std::vector<element> items;
  root.require("artefacts", items);
  if (items.size() > kMaxManifestArtefacts) {
    errors.report(ErrorKind::kCorrupt,
                  str_format("'artefacts' names more than {} files", kMaxManifestArtefacts));
  }
  int models = 0;
  for (std::size_t i = 0; i < items.size() && !errors.first; ++i) {
    ManifestArtefact artefact{.field = str_format("artefacts[{}]", i)};
    JsonObject object(items[i], artefact.field, errors);
    std::string role;
    object.require("path", artefact.path);
    object.require("sha256", artefact.sha256);
    object.require("role", role);
    object.finish();
    if (errors.first) return;
    constexpr std::array<std::string_view, 2> kRoles{"model", "data"};
    artefact.is_model = choose(errors, object.path_of("role"), role, kRoles) == 0;
    models += artefact.is_model ? 1 : 0;
    check_sha256(errors, object.path_of("sha256"), artefact.sha256);
    document.artefacts.push_back(std::move(artefact));
  }
  if (!errors.first && models != 1) {
    errors.report(ErrorKind::kCorrupt,
                  str_format("'artefacts' must have exactly one of role 'model', not {}", models));
  }
}

void read_engine(JsonObject& root, Manifest& manifest) {
  JsonErrors& errors = root.errors();
  JsonObject object = child(root, "engine");
  std::string architecture = "any";
  bool offload_copy = false;
  object.require("name", manifest.engine);
  object.allow("provider", manifest.provider);
  object.allow("architecture", architecture);
  object.allow("offload_copy", offload_copy);
  object.finish();
  if (errors.first) return;
  choose(errors, object.path_of("name"), manifest.engine, kEngines, ErrorKind::kUnsupported);
  choose(errors, object.path_of("provider"), manifest.provider, kProviders,
         ErrorKind::kUnsupported);
  utsname host{};
  uname(&host);
  if (architecture != "any" && architecture != host.machine) {
    errors.report(ErrorKind::kUnsupported,
                  str_format("'{}' is '{}', this machine is '{}': prepare the model here",
                             object.path_of("architecture"), architecture, host.machine));
  }
  if (offload_copy) {
    errors.report(ErrorKind::kUnsupported,
                  str_format("'{}' must be false: inputs and outputs stay on the device",
                             object.path_of("offload_copy")));
  }
}

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
void check_against_input(JsonObject& object, const Manifest& manifest) {
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
}

void read_preprocess(JsonObject& root, Manifest& manifest) {
  JsonErrors& errors = root.errors();
  JsonObject object = child(root, "preprocess");
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
    if (side < 1 || side > kMaxSide) {
      errors.report(ErrorKind::kCorrupt,
                    str_format("'{}' must be in 1..{}", object.path_of(key), kMaxSide));
    }
  }
  constexpr std::array<std::string_view, 2> kLayouts{"NCHW", "NHWC"};
  spec.layout = choose(errors, object.path_of("layout"), layout, kLayouts) == 0
                    ? TensorLayout::kNchw
                    : TensorLayout::kNhwc;
  constexpr std::array<std::string_view, 2> kOrders{"RGB", "BGR"};
  spec.order = choose(errors, object.path_of("order"), order, kOrders) == 0 ? ChannelOrder::kRgb
                                                                            : ChannelOrder::kBgr;
  constexpr std::array<std::string_view, 3> kFits{"stretch", "letterbox-center",
                                                  "letterbox-top-left"};
  constexpr std::array kFitValues{Fit::kStretch, Fit::kLetterboxCenter, Fit::kLetterboxTopLeft};
  spec.fit = kFitValues[choose(errors, object.path_of("fit"), fit, kFits)];
  if (!(spec.scale > 0.0f)) {
    errors.report(ErrorKind::kCorrupt,
                  str_format("'{}' must be positive", object.path_of("scale")));
  }
  if (!(spec.pad_level >= 0.0f && spec.pad_level <= 255.0f)) {
    errors.report(ErrorKind::kCorrupt, str_format("'{}' must be in 0..255", object.path_of("pad")));
  }
  if (!errors.first) check_against_input(object, manifest);
}

void read_licence(JsonObject& root, Manifest& manifest) {
  JsonObject object = child(root, "licence");
  std::string spdx, confidence;
  object.require("spdx", spdx);
  object.require("confidence", confidence);
  object.finish();
  manifest.licence = str_format("{} ({})", spdx, confidence);
}

/// Where the model came from: kept for the reader of the file, checked for its form only.
void read_origin(JsonObject& root) {
  if (!root.has("origin")) return;
  JsonObject object = child(root, "origin");
  std::string text;
  for (const char* key : {"registry", "package", "version", "sha256", "url", "recipe"}) {
    object.allow(key, text);
  }
  object.finish();
}

void read_schema2(JsonObject& root, ManifestDocument& document) {
  JsonErrors& errors = root.errors();
  Manifest& manifest = document.manifest;
  root.require("name", manifest.name);
  read_artefacts(root, document);
  read_engine(root, manifest);
  manifest.inputs = read_tensors(root, "inputs");
  manifest.outputs = read_tensors(root, "outputs");
  root.require("task", manifest.task);
  root.require("family", manifest.family);
  root.require("labels", manifest.labels);
  read_preprocess(root, manifest);
  JsonObject post = child(root, "postprocess");
  post.require("threshold", manifest.threshold);
  post.require("iou_threshold", manifest.iou_threshold);
  post.finish();
  read_licence(root, manifest);
  read_origin(root);
  root.allow("weaknesses", manifest.weaknesses);
  int classes = 0;
  const bool counted = root.allow("classes", classes);
  root.finish();
  if (errors.first) return;

  constexpr std::array<std::string_view, 1> kTasks{"detection"};
  choose(errors, "task", manifest.task, kTasks, ErrorKind::kUnsupported);
  if (manifest.family.empty()) errors.report(ErrorKind::kCorrupt, "'family' is empty");
  check_labels(errors, manifest.labels);
  if (counted && std::cmp_not_equal(classes, manifest.labels.size())) {
    errors.report(ErrorKind::kCorrupt, str_format("'labels' has {} entries, but 'classes' is {}",
                                                  manifest.labels.size(), classes));
  }
  check_unit_interval(post, "threshold", manifest.threshold);
  check_unit_interval(post, "iou_threshold", manifest.iou_threshold);
}

}  // namespace

Result<ManifestDocument> parse_manifest(std::string_view json) {
  if (json.size() > kMaxManifestBytes) {
    return fail(ErrorKind::kCorrupt, str_format("the manifest has {} bytes, more than {}",
                                                json.size(), kMaxManifestBytes));
  }
  simdjson::dom::parser parser(kMaxManifestBytes);
  if (const auto error = parser.allocate(kMaxManifestBytes, kMaxManifestNesting)) {
    return fail(ErrorKind::kExhausted, simdjson::error_message(error));
  }
  element document_element;
  // Copies into a padded buffer: simdjson reads past the end.
  if (const auto error = parser.parse(simdjson::padded_string(json)).get(document_element)) {
    return fail(ErrorKind::kCorrupt,
                str_format("not valid JSON: {}", simdjson::error_message(error)));
  }
  JsonErrors errors;
  JsonObject root(document_element, "", errors);
  ManifestDocument document;
  Manifest& manifest = document.manifest;
  root.require("schema", manifest.schema);
  if (errors.first) return std::unexpected(*errors.first);
  switch (manifest.schema) {
    case 1:
      read_schema1(root, document);
      break;
    case 2:
      read_schema2(root, document);
      break;
    default:
      return fail(ErrorKind::kUnsupported,
                  str_format("'schema' is {}; this build reads 1 and 2", manifest.schema));
  }
  if (!errors.first && (manifest.name.empty() || manifest.name.size() > 128 ||
                        manifest.name.find('/') != std::string::npos)) {
    errors.report(ErrorKind::kCorrupt, "'name' must be 1..128 characters without '/'");
  }
  if (errors.first) return std::unexpected(*errors.first);
  return document;
}

}  // namespace penstock
