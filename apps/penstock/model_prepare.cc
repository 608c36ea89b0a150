// SPDX-License-Identifier: Apache-2.0
//
// penstock model prepare FILE.onnx: from flags to a prepared model, which is opened, whose outputs
// are matched with its family and which is tried on a picture, if one is given, before it is put in
// place.
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/penstock/commands.h"
#include "apps/penstock/engine_flags.h"
#include "apps/penstock/messages.h"
#include "apps/penstock/model_try.h"
#include "apps/penstock/number_flags.h"
#include "penstock/base/exit_code.h"
#include "penstock/base/small_file.h"
#include "penstock/base/str_format.h"
#include "penstock/exec/frame_inference.h"
#include "penstock/exec/half_outputs.h"
#include "penstock/model/family_guess.h"
#include "penstock/model/preparation.h"
#include "penstock/task/output_decoder.h"

namespace penstock {
namespace {

/// Of a file of labels: what a manifest that holds them may have.
constexpr std::size_t kMaxNamesBytes = std::size_t{1} << 20;

struct Flags {
  std::string file;
  std::string models;
  std::string labels, keypoints;
  std::string order, fit, scores, scale;
  std::string picture, out;
  EngineFlags engine;
  std::vector<std::string> mean, std;
  std::vector<std::string> constants, provider_options;
  PrepareOptions options;
  bool replace = false;
};

/// One name a line. What editors of other systems add (a byte order mark, `\r`) is no part of a
/// name.
Result<std::vector<std::string>> read_names(std::string_view flag, const std::string& path) {
  auto text = read_small_file(path, kMaxNamesBytes);
  if (!text) {
    return std::unexpected(
        std::move(text).error().context(str_format("{} is a file with one name a line", flag)));
  }
  std::string_view rest = *text;
  if (rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);
  std::vector<std::string> names;
  for (const auto part : std::views::split(rest, '\n')) {
    std::string_view line(part);
    if (line.ends_with('\r')) line.remove_suffix(1);
    names.emplace_back(line);
  }
  while (!names.empty() && names.back().empty()) names.pop_back();
  if (names.empty()) return fail(ErrorKind::kCorrupt, str_format("'{}' holds no name", path));
  return names;
}

/// "sizes=640,480".
Result<InputConstant> read_constant(const std::string& text) {
  const auto refuse = [&] {
    return fail(ErrorKind::kInvalidArgument,
                str_format("--constant '{}' is not NAME=NUMBER,NUMBER,...", text));
  };
  const std::size_t equals = text.rfind('=');  // A name may hold one.
  if (equals == text.npos || equals == 0) return refuse();
  InputConstant constant{.input = text.substr(0, equals), .values = {}};
  const char* at = text.data() + equals + 1;
  const char* const end = text.data() + text.size();
  while (true) {
    double value = 0;
    const auto [rest, error] = std::from_chars(at, end, value);
    if (error != std::errc() || !std::isfinite(value)) return refuse();
    constant.values.push_back(value);
    if (rest == end) return constant;
    if (*rest != ',') return refuse();
    at = rest + 1;
  }
}

/// "0.0039", "1/255".
Result<float> read_scale(const std::string& text) {
  const auto number = [](std::string_view digits) -> std::optional<double> {
    double value = 0;
    const char* const begin = digits.data();
    const char* const end = begin + digits.size();
    const auto [rest, error] = std::from_chars(begin, end, value);
    if (error != std::errc() || rest != end) return std::nullopt;
    return value;
  };
  const std::size_t slash = text.find('/');
  const auto upper = number(std::string_view(text).substr(0, slash));
  const auto lower =
      slash == text.npos ? std::optional(1.0) : number(std::string_view(text).substr(slash + 1));
  const float scale =
      upper && lower ? static_cast<float>(*upper / *lower) : std::numeric_limits<float>::infinity();
  if (std::isfinite(scale)) return scale;
  return fail(ErrorKind::kInvalidArgument,
              str_format("--scale '{}' is neither a number nor a fraction like 1/255", text));
}

/// "104,117,123", or three words.
Result<void> take_three(std::string_view flag, const std::vector<std::string>& words,
                        std::optional<std::array<float, 3>>& place) {
  if (words.empty()) return {};
  std::vector<float> values;
  for (const std::string& word : words) {
    for (const auto part : std::views::split(word, ',')) {
      float value = 0;
      if (!CLI::detail::lexical_cast(std::string(std::string_view(part)), value)) break;
      values.push_back(value);
    }
  }
  if (values.size() != 3) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("{} takes three numbers, one a channel, as {} 104,117,123; it got {}",
                           flag, flag, values.size()));
  }
  place = {values[0], values[1], values[2]};
  return {};
}

Result<void> take_flags(Flags& flags) {
  PrepareOptions& options = flags.options;
  if (!flags.labels.empty()) {
    auto labels = read_names("--labels", flags.labels);
    if (!labels) return std::unexpected(labels.error());
    options.labels = *std::move(labels);
  }
  if (!flags.keypoints.empty()) {
    auto keypoints = read_names("--keypoints", flags.keypoints);
    if (!keypoints) return std::unexpected(keypoints.error());
    options.keypoints = *std::move(keypoints);
  }
  if (!flags.scores.empty()) {
    options.scores = flags.scores == "logits" ? ScoreKind::kLogits : ScoreKind::kProbabilities;
  }
  if (!flags.out.empty() && flags.picture.empty()) {
    return fail(ErrorKind::kInvalidArgument, "--out is the picture that --try writes; give --try");
  }
  if (!flags.scale.empty()) {
    const auto scale = read_scale(flags.scale);
    if (!scale) return std::unexpected(scale.error());
    options.scale = *scale;
  }
  if (!flags.order.empty()) {
    options.order = flags.order == "BGR" ? ChannelOrder::kBgr : ChannelOrder::kRgb;
  }
  if (!flags.fit.empty()) {
    options.fit = flags.fit == "stretch"            ? Fit::kStretch
                  : flags.fit == "letterbox-center" ? Fit::kLetterboxCenter
                                                    : Fit::kLetterboxTopLeft;
  }
  for (const std::string& text : flags.constants) {
    auto constant = read_constant(text);
    if (!constant) return std::unexpected(constant.error());
    options.constants.push_back(*std::move(constant));
  }
  for (const std::string& text : flags.provider_options) {
    const std::size_t equals = text.find('=');
    if (equals == text.npos || equals == 0) {
      return fail(ErrorKind::kInvalidArgument,
                  str_format("--provider-option '{}' is not KEY=VALUE", text));
    }
    options.provider_options.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  PENSTOCK_TRY(take_three("--mean", flags.mean, options.mean));
  return take_three("--std", flags.std, options.std);
}

/// As a shell takes it for one word.
std::string shell_word(const std::string& text) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("/._-+=:@%,").contains(c);
  };
  if (!text.empty() && std::ranges::all_of(text, is_plain)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// The manifest as it will be, of the file where it lies now.
Manifest manifest_of(const Preparation& plan) {
  Manifest manifest = plan.manifest;
  manifest.artefact = plan.file;
  manifest.artefact_sha256 = plan.model_sha256;
  std::error_code ignored;
  manifest.folder = std::filesystem::absolute(plan.file, ignored).parent_path();
  for (const std::string& path : plan.data) {
    const auto hash = plan.data_sha256.find(path);
    manifest.data.push_back(
        {.path = path, .sha256 = hash == plan.data_sha256.end() ? "" : hash->second});
  }
  return manifest;
}

/// Opens the model as `run` will, so that what can't run is not prepared.
Result<void> check_runs(const Manifest& manifest, const EngineFlags& engine) {
  if (auto decoder = create_decoder(with_widened_outputs(manifest), decode_options_of(manifest));
      !decoder) {
    return std::unexpected(std::move(decoder).error().context("give --family or --labels"));
  }
  auto device = open_device(DeviceId{});
  if (!device) return std::unexpected(device.error());
  auto inference = FrameInference::open(*device, manifest,
                                        {.workers = 1,
                                         .decode = decode_options_of(manifest),
                                         .engine_library = engine.library,
                                         .provider_library = engine.provider_library});
  if (!inference) return std::unexpected(inference.error());
  return {};
}

TryOptions try_options(const Flags& flags, const Preparation& plan) {
  TryOptions options{.picture = flags.picture,
                     .out = flags.out,
                     .read_files = {plan.file},
                     .engine = flags.engine,
                     .is_new = true};
  for (const std::string& data : plan.data) {
    options.read_files.push_back(plan.file.parent_path() / data);
  }
  for (const std::string& names : {flags.labels, flags.keypoints}) {
    if (!names.empty()) options.read_files.push_back(names);
  }
  return options;
}

int prepare(Flags& flags) {
  if (auto taken = take_flags(flags); !taken) return report(taken.error());
  auto plan = plan_preparation(flags.file, flags.options);
  if (!plan) return report(plan.error());
  const auto models = models_folder(flags.models);
  if (auto free = check_place(*plan, models, flags.replace); !free) return report(free.error());
  if (auto free = check_outputs(try_options(flags, *plan)); !free) return report(free.error());
  for (const std::string& note : plan->notes) say(note);
  const Manifest planned = manifest_of(*plan);
  if (auto runs = check_runs(planned, flags.engine); !runs) return report(runs.error());
  if (!flags.picture.empty()) {
    auto tried = try_model(planned, try_options(flags, *plan));
    if (!tried) return report(tried.error());
  }
  auto manifest = write_prepared(*plan, models, flags.replace);
  if (!manifest) return report(manifest.error());
  say(str_format("wrote {}; run it with: penstock run{} --model {} --source VIDEO",
                 manifest->string(),
                 flags.models.empty() ? "" : " --models " + shell_word(flags.models),
                 shell_word(plan->manifest.name)));
  return kExitOk;
}

}  // namespace

Command add_model_prepare(CLI::App& model) {
  auto flags = std::make_shared<Flags>();
  PrepareOptions& options = flags->options;
  CLI::App* command = model.add_subcommand(
      "prepare", "Make an ONNX file a prepared model; says what was taken from where");
  command->add_option("file", flags->file, "The .onnx file")->required();
  command->add_option("--name", options.name, "Name of the model; default: the file's");
  command->add_option("--models", flags->models, "Folder of prepared models");
  command->add_option("--task", options.task, "What the model does, e.g. detection")
      ->check(CLI::IsMember(std::vector<std::string>(kTasks.begin(), kTasks.end())));
  command->add_option("--family", options.family, "One of " + known_families());
  command
      ->add_option("--outputs", options.outputs,
                   "Only this of the model's outputs; may be given several times")
      ->allow_extra_args(false);
  command->add_option("--labels", flags->labels, "File with one class name a line");
  command->add_option("--keypoints", flags->keypoints, "File with one keypoint's name a line");
  command
      ->add_option("--constant", flags->constants,
                   "NAME=NUMBER,...: what an input that is not the picture always gets; "
                   "may be given several times")
      ->allow_extra_args(false);
  command->add_option("--scores", flags->scores, "What the outputs of classes are")
      ->check(CLI::IsMember({"logits", "probabilities"}));
  command->add_option("--top-k", options.top_k, "Classes that are told of a picture")
      ->check(CLI::Range(1, kMaxTopK));
  command->add_flag("--normalise", options.normalise, "Divide embeddings by their length");
  command->add_flag("--class-agnostic", options.class_agnostic, "NMS over all classes at once");
  command->add_option("--width", options.width,
                      "Input width, pixels, where the model leaves it open");
  command->add_option("--height", options.height, "Input height, likewise");
  command->add_option("--order", flags->order, "Channel order")
      ->check(CLI::IsMember({"RGB", "BGR"}));
  command->add_option("--scale", flags->scale,
                      "value = (level x scale - mean) / std; a number or a fraction, as 1/255");
  // A word that is no number is the file's, so that three words don't take it.
  command->validate_optional_arguments();
  for (const auto& [flag, place] :
       {std::pair("--mean", &flags->mean), std::pair("--std", &flags->std)}) {
    command->add_option(flag, *place, "A,B,C: three numbers in channel order, or three words")
        ->expected(1, 3)
        ->allow_extra_args(false)
        ->check(finite_numbers());
  }
  command->add_option("--fit", flags->fit, "How a frame becomes the input")
      ->check(CLI::IsMember({"stretch", "letterbox-center", "letterbox-top-left"}));
  command->add_option("--pad", options.pad, "Level of the letterbox's padding, 0..255");
  command->add_option("--threshold", options.threshold, "Default score threshold")
      ->check(finite_number(0, 1));
  command->add_option("--iou-threshold", options.iou_threshold, "Default IoU threshold of NMS")
      ->check(finite_number(0, 1));
  command->add_option("--try", flags->picture,
                      "Picture to run the model on first; nothing is written when that fails");
  command->add_option("--out", flags->out, "With --try: the picture to write, .jpg or .png");
  command->add_option("--licence", options.licence, "SPDX expression of the model's licence");
  command->add_option("--provider", options.provider,
                      "Execution provider of ONNX Runtime that runs it; default: the CPU's");
  command
      ->add_option("--provider-option", flags->provider_options,
                   "KEY=VALUE, as the provider documents it; may be given several times")
      ->allow_extra_args(false);
  command
      ->add_option("--cpu-node", options.cpu_nodes,
                   "This node may run on the CPU though the provider is another; may be given "
                   "several times")
      ->allow_extra_args(false);
  add_engine_flags(*command, flags->engine);
  command->add_flag("--replace", flags->replace, "Replace a prepared model of that name");
  return [flags] { return prepare(*flags); };
}

}  // namespace penstock
