// SPDX-License-Identifier: Apache-2.0
//
// penstock model prepare FILE.onnx: from flags to a prepared model, which is opened and whose
// outputs are matched with its family before it is put in place.
#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/penstock/commands.h"
#include "penstock/base/exit_code.h"
#include "penstock/base/str_format.h"
#include "penstock/model/preparation.h"
#include "penstock/model/session.h"
#include "penstock/task/output_decoder.h"

namespace penstock {
namespace {

struct Flags {
  std::string file;
  std::string models;
  std::string labels;
  std::string order, fit;
  std::string library;
  std::vector<float> mean, std;
  PrepareOptions options;
  bool replace = false;
};

int report(const Error& error) {
  std::fprintf(stderr, "penstock: %s\n", error.message().c_str());
  return exit_code(error.kind());
}

Result<std::vector<std::string>> read_labels(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> labels;
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with('\r')) line.pop_back();
    labels.push_back(line);
  }
  if (!file.eof())
    return fail(ErrorKind::kNotFound, str_format("cannot read labels from '{}'", path));
  while (!labels.empty() && labels.back().empty()) labels.pop_back();
  if (labels.empty()) return fail(ErrorKind::kCorrupt, str_format("'{}' holds no label", path));
  return labels;
}

Result<void> take_flags(Flags& flags) {
  PrepareOptions& options = flags.options;
  if (!flags.labels.empty()) {
    auto labels = read_labels(flags.labels);
    if (!labels) return std::unexpected(labels.error());
    options.labels = *std::move(labels);
  }
  if (!flags.order.empty()) {
    options.order = flags.order == "BGR" ? ChannelOrder::kBgr : ChannelOrder::kRgb;
  }
  if (!flags.fit.empty()) {
    options.fit = flags.fit == "stretch"            ? Fit::kStretch
                  : flags.fit == "letterbox-center" ? Fit::kLetterboxCenter
                                                    : Fit::kLetterboxTopLeft;
  }
  const auto three = [](const std::vector<float>& v) {
    return std::array<float, 3>{v[0], v[1], v[2]};
  };
  if (!flags.mean.empty()) options.mean = three(flags.mean);
  if (!flags.std.empty()) options.std = three(flags.std);
  return {};
}

/// Opens the model as `run` will, so that what can't run is not prepared.
Result<void> check_runs(const Preparation& plan, const std::string& library) {
  Manifest manifest = plan.manifest;
  manifest.artefact = plan.file;
  std::error_code ignored;
  manifest.folder = std::filesystem::absolute(plan.file, ignored).parent_path();
  manifest.data = plan.data;
  if (auto decoder = create_decoder(
          manifest, {.threshold = manifest.threshold, .iou_threshold = manifest.iou_threshold});
      !decoder) {
    return std::unexpected(std::move(decoder).error().context("give --family or --labels"));
  }
  auto device = open_device(DeviceId{});
  if (!device) return std::unexpected(device.error());
  auto session = open_session(*device, manifest, {.engine_library = library});
  if (!session) return std::unexpected(session.error());
  return {};
}

int prepare(Flags& flags) {
  if (auto taken = take_flags(flags); !taken) return report(taken.error());
  auto plan = plan_preparation(flags.file, flags.options);
  if (!plan) return report(plan.error());
  for (const std::string& note : plan->notes) std::printf("%s\n", note.c_str());
  if (auto runs = check_runs(*plan, flags.library); !runs) return report(runs.error());
  auto manifest = write_prepared(*plan, models_folder(flags.models), flags.replace);
  if (!manifest) return report(manifest.error());
  std::printf("wrote %s; run it with: penstock run --model %s --source VIDEO\n", manifest->c_str(),
              plan->manifest.name.c_str());
  return kExitOk;
}

}  // namespace

Command add_model_prepare(CLI::App& model) {
  auto flags = std::make_shared<Flags>();
  PrepareOptions& options = flags->options;
  CLI::App* command = model.add_subcommand(
      "prepare", "Make an ONNX detector a prepared model; says what was taken from where");
  command->add_option("file", flags->file, "The .onnx file")->required();
  command->add_option("--name", options.name, "Name of the model; default: the file's");
  command->add_option("--models", flags->models, "Folder of prepared models");
  command->add_option("--family", options.family,
                      "nanodet, yolov5, yolov8, yolo-end-to-end, yolox, rtdetr or ssd");
  command->add_option("--labels", flags->labels, "File with one class name a line");
  command->add_option("--width", options.width,
                      "Input width, pixels, where the model leaves it open");
  command->add_option("--height", options.height, "Input height, likewise");
  command->add_option("--order", flags->order, "Channel order")
      ->check(CLI::IsMember({"RGB", "BGR"}));
  command->add_option("--scale", options.scale, "value = (level x scale - mean) / std");
  command->add_option("--mean", flags->mean, "Three numbers, in channel order")->expected(3);
  command->add_option("--std", flags->std, "Three numbers, in channel order")->expected(3);
  command->add_option("--fit", flags->fit, "How a frame becomes the input")
      ->check(CLI::IsMember({"stretch", "letterbox-center", "letterbox-top-left"}));
  command->add_option("--pad", options.pad, "Level of the letterbox's padding, 0..255");
  command->add_option("--threshold", options.threshold, "Default score threshold")
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--iou-threshold", options.iou_threshold, "Default IoU threshold of NMS")
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--licence", options.licence, "SPDX expression of the model's licence");
  command->add_option("--engine-library", flags->library, "The ONNX Runtime library");
  command->add_flag("--replace", flags->replace, "Replace a prepared model of that name");
  return [flags] { return prepare(*flags); };
}

}  // namespace penstock
