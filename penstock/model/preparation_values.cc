// SPDX-License-Identifier: Apache-2.0
//
// Preparation: the provider, how a frame becomes the model's input, and the licence.
#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "penstock/base/str_format.h"
#include "penstock/media/fit_text.h"
#include "penstock/model/manifest_parser.h"
#include "penstock/model/preparation.h"
#include "penstock/model/preparation_plan.h"

namespace penstock {
namespace {

/// What is usual where nobody says; nothing where exporters differ.
std::optional<std::pair<PreprocessSpec, std::string>> usual(const PlanState& state) {
  const Manifest& manifest = state.manifest();
  if (auto known = family_preprocess(manifest.family)) {
    return std::pair(*known, str_format("usual for {}", manifest.family));
  }
  if (manifest.family == "classification" && state.said.is_ultralytics) {
    PreprocessSpec spec;
    spec.scale = 1.0f / 255.0f;
    return std::pair(spec, std::string("usual for Ultralytics' classifiers, which crop the middle "
                                       "instead of stretching"));
  }
  return std::nullopt;
}

template <typename T>
void take(const Stated<T>& said, T& place, std::set<std::string>& sources) {
  if (!said) return;
  place = *said;
  sources.insert(said.source);
}

std::string three(const std::array<float, 3>& values) {
  if (values[0] == values[1] && values[1] == values[2]) return str_format("{:.6g}", values[0]);
  return str_format("{:.6g} {:.6g} {:.6g}", values[0], values[1], values[2]);
}

}  // namespace

Result<void> plan_normalisation(PlanState& state) {
  const Statements& said = state.said;
  PreprocessSpec& pre = state.manifest().preprocess;
  const auto known = usual(state);
  std::string missing;
  for (const auto& [flag, is_said] :
       {std::pair("--order", static_cast<bool>(said.order)),
        std::pair("--scale (and --mean, --std)", static_cast<bool>(said.scale)),
        std::pair("--fit", static_cast<bool>(said.fit))}) {
    if (!is_said) missing += str_format("{}{}", missing.empty() ? "" : ", ", flag);
  }
  if (!known && !missing.empty()) {
    ask_later(state, str_format("models of family '{}' differ in what they take; give {}",
                                state.manifest().family, missing));
    return {};
  }
  std::set<std::string> sources;
  if (known) {
    pre.order = known->first.order;
    // A model of bytes divides by itself; a scale that is said is no part of the usual mean's.
    if (pre.type != DataType::kUint8 && !said.scale) {
      pre.scale = known->first.scale;
      pre.mean = known->first.mean;
      pre.std = known->first.std;
    }
    pre.fit = known->first.fit;
    pre.pad_level = known->first.pad_level;
    if (!missing.empty()) sources.insert(known->second);
  }
  take(said.order, pre.order, sources);
  take(said.scale, pre.scale, sources);
  take(said.mean, pre.mean, sources);
  take(said.std, pre.std, sources);
  take(said.fit, pre.fit, sources);
  take(said.pad, pre.pad_level, sources);
  const bool normalises = pre.scale != 1.0f || pre.mean != std::array{0.0f, 0.0f, 0.0f} ||
                          pre.std != std::array{1.0f, 1.0f, 1.0f};
  if (pre.type == DataType::kUint8 && normalises) {
    return contradiction(
        str_format("input '{}' is uint8 and takes the levels themselves, but a "
                   "scale, mean or std is given",
                   pre.input_name));
  }
  std::string from;
  for (const std::string& source : sources)
    from += str_format("{}{}", from.empty() ? "" : ", ", source);
  state.note(str_format("preprocessing: {} ({})", describe_preprocessing(pre), from));
  return {};
}

Result<void> plan_engine(PlanState& state) {
  const PrepareOptions& options = state.options;
  Manifest& manifest = state.manifest();
  manifest.engine = "onnxruntime";
  if (!options.provider.empty()) manifest.provider = options.provider;
  if (!manifest.provider.ends_with("ExecutionProvider") || manifest.provider.size() > 128) {
    return contradiction(str_format(
        "--provider is '{}'; names of providers end in 'ExecutionProvider'", manifest.provider));
  }
  const std::set<std::string_view> names(options.cpu_nodes.begin(), options.cpu_nodes.end());
  if (names.size() > kMaxCpuNodes) {
    return contradiction(str_format("--cpu-node names more than {} nodes", kMaxCpuNodes));
  }
  if (names.contains("")) return contradiction("--cpu-node is empty");
  if (manifest.provider == kCpuProvider && !names.empty()) {
    return contradiction(
        "--cpu-node says what may run on the CPU, but all does; give another --provider");
  }
  if (options.provider_options.size() > kMaxManifestOptions) {
    return contradiction(str_format("more than {} times --provider-option", kMaxManifestOptions));
  }
  std::set<std::string_view> keys;
  for (const auto& [key, value] : options.provider_options) {
    if (!keys.insert(key).second) {
      return contradiction(str_format("--provider-option gives '{}' twice", key));
    }
  }
  manifest.provider_options = options.provider_options;
  manifest.cpu_nodes.assign(names.begin(), names.end());
  if (!options.provider.empty()) {
    state.note(
        str_format("provider: {}{} (--provider)", manifest.provider,
                   names.empty() ? "" : str_format(", with {} nodes on the CPU", names.size())));
  }
  return {};
}

std::string describe_preprocessing(const PreprocessSpec& pre) {
  return str_format("{}, (level x {:.6g} - {}) / {}, {}",
                    pre.order == ChannelOrder::kBgr ? "BGR" : "RGB", pre.scale, three(pre.mean),
                    three(pre.std), to_string(pre.fit));
}

void plan_licence(PlanState& state) {
  Preparation& plan = state.plan;
  const Stated<std::string>& licence = state.said.licence;
  plan.spdx = licence ? *licence : "NOASSERTION";
  plan.confidence = !licence          ? "none: neither the file nor a flag says"
                    : licence.is_flag ? "given by who prepared the model"
                                      : licence.source;
  state.note(str_format("licence: {} ({})", plan.spdx, plan.confidence));
}

}  // namespace penstock
