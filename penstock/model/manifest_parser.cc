// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/manifest_parser.h"

#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>

#include "penstock/base/str_format.h"
#include "penstock/model/json_object.h"
#include "penstock/model/manifest_processing.h"
#include "penstock/model/manifest_schema1.h"

namespace penstock {
namespace {

using simdjson::dom::element;

constexpr std::array<std::string_view, 1> kEngines{"onnxruntime"};
constexpr std::array<DataType, 8> kTypes{DataType::kFloat32, DataType::kFloat16, DataType::kFloat64,
                                         DataType::kUint8,   DataType::kInt8,    DataType::kInt32,
                                         DataType::kInt64,   DataType::kBool};

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
    spec.type = kTypes[json_choose(errors, object.path_of("type"), type, type_names)];
    constexpr std::array<std::string_view, 3> kLayouts{"any", "NCHW", "NHWC"};
    constexpr std::array kLayoutValues{TensorLayout::kAny, TensorLayout::kNchw,
                                       TensorLayout::kNhwc};
    spec.layout = kLayoutValues[json_choose(errors, object.path_of("layout"), layout, kLayouts)];
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
    artefact.is_model = json_choose(errors, object.path_of("role"), role, kRoles) == 0;
    models += artefact.is_model ? 1 : 0;
    check_sha256(errors, object.path_of("sha256"), artefact.sha256);
    document.artefacts.push_back(std::move(artefact));
  }
  if (!errors.first && models != 1) {
    errors.report(ErrorKind::kCorrupt,
                  str_format("'artefacts' must have exactly one of role 'model', not {}", models));
  }
}

void read_provider_options(JsonObject& engine, Manifest& manifest) {
  JsonErrors& errors = engine.errors();
  if (errors.first || !engine.has("provider_options")) return;
  element options;
  engine.require("provider_options", options);
  simdjson::dom::object entries;
  const std::string path = engine.path_of("provider_options");
  if (options.get_object().get(entries) || entries.size() > kMaxManifestOptions) {
    errors.report(ErrorKind::kCorrupt, str_format("'{}' must be an object of at most {} strings",
                                                  path, kMaxManifestOptions));
    return;
  }
  for (const auto& [key, value] : entries) {
    auto text = json_string(value, str_format("{}.{}", path, key), errors);
    if (!text) return;
    if (key.find('\0') != key.npos || text->find('\0') != text->npos) {
      errors.report(ErrorKind::kCorrupt, str_format("'{}' holds a NUL", path));
      return;
    }
    manifest.provider_options.emplace_back(key, *std::move(text));
  }
}

void read_cpu_nodes(JsonObject& engine, Manifest& manifest) {
  JsonErrors& errors = engine.errors();
  if (!engine.allow("cpu_nodes", manifest.cpu_nodes) || errors.first) return;
  const std::string path = engine.path_of("cpu_nodes");
  const auto& names = manifest.cpu_nodes;
  if (names.empty() || names.size() > kMaxCpuNodes) {
    errors.report(ErrorKind::kCorrupt,
                  str_format("'{}' must name 1..{} nodes", path, kMaxCpuNodes));
  } else if (manifest.provider == kCpuProvider) {
    errors.report(
        ErrorKind::kCorrupt,
        str_format("'{}' says what may run on the CPU, but all does: 'engine.provider' is "
                   "'{}'",
                   path, manifest.provider));
  }
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty() || !seen.insert(names[i]).second) {
      errors.report(ErrorKind::kCorrupt,
                    str_format("'{}[{}]' is empty or given twice: '{}'", path, i, names[i]));
    }
  }
}

void read_constants(JsonObject& root, Manifest& manifest) {
  JsonErrors& errors = root.errors();
  std::vector<element> items;
  if (!root.allow("constants", items) || errors.first) return;
  for (std::size_t i = 0; i < items.size() && !errors.first; ++i) {
    JsonObject object(items[i], str_format("constants[{}]", i), errors);
    InputConstant constant;
    std::vector<element> values;
    object.require("input", constant.input);
    object.require("values", values);
    object.finish();
    if (errors.first) return;
    const bool is_input = std::ranges::contains(manifest.inputs, constant.input, &TensorSpec::name);
    const bool is_new =
        !std::ranges::contains(manifest.constants, constant.input, &InputConstant::input);
    if (!is_input || !is_new || constant.input == manifest.preprocess.input_name) {
      errors.report(ErrorKind::kCorrupt,
                    str_format("'{}' is '{}', which is none of 'inputs', given twice, or the "
                               "picture",
                               object.path_of("input"), constant.input));
      return;
    }
    if (values.empty() || values.size() > kMaxConstantValues) {
      errors.report(ErrorKind::kCorrupt, str_format("'{}' must have 1..{} numbers",
                                                    object.path_of("values"), kMaxConstantValues));
      return;
    }
    for (std::size_t v = 0; v < values.size(); ++v) {
      double number = 0;
      if (values[v].get_double().get(number)) {
        errors.report(ErrorKind::kCorrupt,
                      str_format("'{}[{}]' is no number", object.path_of("values"), v));
        return;
      }
      constant.values.push_back(number);
    }
    manifest.constants.push_back(std::move(constant));
  }
}

void read_engine(JsonObject& root, Manifest& manifest) {
  JsonErrors& errors = root.errors();
  JsonObject object = json_child(root, "engine");
  std::string architecture = "any";
  bool offload_copy = false;
  object.require("name", manifest.engine);
  object.allow("provider", manifest.provider);
  read_provider_options(object, manifest);
  read_cpu_nodes(object, manifest);
  object.allow("architecture", architecture);
  object.allow("offload_copy", offload_copy);
  object.finish();
  if (errors.first) return;
  json_choose(errors, object.path_of("name"), manifest.engine, kEngines, ErrorKind::kUnsupported);
  // Which ones there are, the engine says when the model is opened.
  if (!manifest.provider.ends_with("ExecutionProvider") || manifest.provider.size() > 128) {
    errors.report(ErrorKind::kCorrupt,
                  str_format("'{}' is '{}'; names of providers end in 'ExecutionProvider'",
                             object.path_of("provider"), manifest.provider));
  }
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

void read_licence(JsonObject& root, Manifest& manifest) {
  JsonObject object = json_child(root, "licence");
  std::string spdx, confidence;
  object.require("spdx", spdx);
  object.require("confidence", confidence);
  object.finish();
  manifest.licence = str_format("{} ({})", spdx, confidence);
}

/// Where the model came from: kept for the reader of the file, checked for its form only.
void read_origin(JsonObject& root) {
  if (!root.has("origin")) return;
  JsonObject object = json_child(root, "origin");
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
  check_name(errors, manifest.name);
  read_artefacts(root, document);
  read_engine(root, manifest);
  manifest.inputs = read_tensors(root, "inputs");
  manifest.outputs = read_tensors(root, "outputs");
  root.require("task", manifest.task);
  root.require("family", manifest.family);
  root.require("labels", manifest.labels);
  read_preprocess(root, manifest);
  read_constants(root, manifest);
  read_postprocess(root, manifest);
  read_licence(root, manifest);
  read_origin(root);
  root.allow("weaknesses", manifest.weaknesses);
  int classes = 0;
  const bool counted = root.allow("classes", classes);
  root.finish();
  if (errors.first) return;

  if (manifest.family.empty()) errors.report(ErrorKind::kCorrupt, "'family' is empty");
  check_labels(errors, manifest.labels);
  if (counted && std::cmp_not_equal(classes, manifest.labels.size())) {
    errors.report(ErrorKind::kCorrupt, str_format("'labels' has {} entries, but 'classes' is {}",
                                                  manifest.labels.size(), classes));
  }
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
