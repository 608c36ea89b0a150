// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/statements.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "penstock/base/str_format.h"
#include "penstock/model/family_guess.h"
#include "penstock/model/manifest_parser.h"

namespace penstock {
namespace {

std::unexpected<Error> wrong(std::string what) {
  return fail(ErrorKind::kInvalidArgument, std::move(what));
}

// Comparisons are written so that NaN fails.
Result<void> check_options(const PrepareOptions& options) {
  if (options.task && std::ranges::find(kTasks, *options.task) == kTasks.end()) {
    std::string tasks;
    for (const std::string_view task : kTasks)
      tasks += str_format("{}{}", tasks.empty() ? "" : ", ", task);
    return wrong(str_format("--task '{}' is none of {}", *options.task, tasks));
  }
  for (const auto& [flag, value] : {std::pair("threshold", options.threshold),
                                    std::pair("iou-threshold", options.iou_threshold)}) {
    if (value && !(*value >= 0 && *value <= 1)) {
      return wrong(str_format("--{} {} is not within 0..1", flag, *value));
    }
  }
  if (options.scale && !(*options.scale > 0)) return wrong("--scale must be above 0");
  if (options.pad && !(*options.pad >= 0 && *options.pad <= 255)) {
    return wrong("--pad must be within 0..255");
  }
  if (options.std) {
    for (const float deviation : *options.std) {
      if (!(deviation > 0)) return wrong("--std must be above 0");
    }
  }
  if (options.top_k && (*options.top_k < 1 || *options.top_k > kMaxTopK)) {
    return wrong(str_format("--top-k {} is not within 1..{}", *options.top_k, kMaxTopK));
  }
  if (options.labels.size() > kMaxManifestLabels) {
    return wrong(str_format("--labels names more than {} classes", kMaxManifestLabels));
  }
  if (options.keypoints.size() > kMaxKeypoints) {
    return wrong(str_format("--keypoints names more than {}", kMaxKeypoints));
  }
  return {};
}

void offer_flags(const PrepareOptions& options, Statements& said) {
  const auto list = [](const std::vector<std::string>& names) {
    return names.empty() ? std::nullopt : std::optional(names);
  };
  said.task.offer(options.task, "--task", true);
  said.family.offer(options.family, "--family", true);
  said.labels.offer(list(options.labels), "--labels", true);
  said.keypoints.offer(list(options.keypoints), "--keypoints", true);
  if (!options.keypoints.empty()) {
    said.keypoint_count.offer(options.keypoints.size(), "--keypoints", true);
  }
  said.width.offer(options.width, "--width", true);
  said.height.offer(options.height, "--height", true);
  said.order.offer(options.order, "--order", true);
  said.fit.offer(options.fit, "--fit", true);
  said.scale.offer(options.scale, "--scale", true);
  said.mean.offer(options.mean, "--mean", true);
  said.std.offer(options.std, "--std", true);
  said.pad.offer(options.pad, "--pad", true);
  said.threshold.offer(options.threshold, "--threshold", true);
  said.iou_threshold.offer(options.iou_threshold, "--iou-threshold", true);
  said.scores.offer(options.scores, "--scores", true);
  if (!options.licence.empty()) said.licence.offer(options.licence, "--licence", true);
}

struct Normalisation {
  float scale = 1;
  std::array<float, 3> mean{0, 0, 0}, std{1, 1, 1};
};

/// Scale, mean and deviation mean nothing without each other, so one flag replaces all that a file
/// says of them.
void offer_normalisation(const Normalisation& normalisation, const std::string& source,
                         Statements& said) {
  std::string flags;
  const auto name = [&](const auto& stated) {
    if (stated && stated.is_flag) flags += (flags.empty() ? "" : ", ") + stated.source;
  };
  name(said.scale);
  name(said.mean);
  name(said.std);
  if (!flags.empty()) {
    said.notes.push_back(str_format(
        "not used: scale, mean and std of {}, which are one, as {} is given", source, flags));
    return;
  }
  said.scale.offer(normalisation.scale, source);
  said.mean.offer(normalisation.mean, source);
  said.std.offer(normalisation.std, source);
}

/// Target ranges of the levels 0..255 as scale and mean; ranges that differ need a deviation each.
void offer_ranges(const ModelInfoTensor& tensor, const std::string& source, Statements& said) {
  if (tensor.ranges.empty()) return;
  std::array<float, 3> mean{}, deviation{};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& [least, most] = tensor.ranges[tensor.ranges.size() == 3 ? i : 0];
    const float width = most - least;
    deviation[i] = 255.0f / width;
    mean[i] = -least * deviation[i];
  }
  if (std::ranges::adjacent_find(tensor.ranges, std::ranges::not_equal_to{}) ==
      tensor.ranges.end()) {
    const auto& [least, most] = tensor.ranges[0];
    return offer_normalisation({.scale = (most - least) / 255.0f, .mean = {-least, -least, -least}},
                               source, said);
  }
  offer_normalisation({.mean = mean, .std = deviation}, source, said);
}

void offer_info(const ModelInfo& info, Statements& said) {
  const std::string& source = info.source;
  if (!info.family.empty()) said.family.offer(info.family, source);
  if (!info.labels.empty()) said.labels.offer(info.labels, source);
  said.threshold.offer(info.threshold, source);
  said.iou_threshold.offer(info.iou_threshold, source);
  said.order.offer(info.order, source);
  said.fit.offer(info.fit, source);
  said.pad.offer(info.pad, source);
  said.scores.offer(info.scores, source);
  if (info.mean || info.std) {
    const Normalisation none;
    offer_normalisation({.mean = info.mean.value_or(none.mean), .std = info.std.value_or(none.std)},
                        source, said);
  }
  for (const ModelInfoTensor& tensor : info.tensors) {
    if (tensor.is_input.value_or(!tensor.ranges.empty())) offer_ranges(tensor, source, said);
  }
  for (const std::string& key : info.unused) {
    said.notes.push_back(str_format("not used: {} ({})", key, source));
  }
}

class Ultralytics {
 public:
  Ultralytics(const OnnxSummary& summary, Statements& said) : summary_(summary), said_(said) {}

  void offer() {
    said_.is_ultralytics = find("names") != nullptr && find("imgsz") != nullptr;
    offer_task();
    if (const std::string* names = find("names")) {
      const auto labels = labels_of_dictionary(*names);
      if (labels.empty()) {
        said_.notes.push_back("not used: metadata 'names', which is no {0: 'name', ...}");
      } else {
        said_.labels.offer(labels, "metadata 'names'");
      }
    }
    offer_numbers();
    if (const std::string* text = find("end2end"); text != nullptr && !text->empty()) {
      said_.end_to_end.offer(*text == "True" || *text == "true", "metadata 'end2end'");
    }
    if (const std::string* text = find("license"); text != nullptr && !text->empty()) {
      said_.licence.offer(*text, "the file's own word");
    }
  }

 private:
  const std::string* find(std::string_view key) const {
    const auto found = std::ranges::find(
        summary_.metadata, key, [](const auto& e) -> const std::string& { return e.first; });
    return found == summary_.metadata.end() ? nullptr : &found->second;
  }

  void offer_task() {
    const std::string* text = find("task");
    if (text == nullptr) return;
    constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kWords{
        {{"detect", "detection"},
         {"segment", "instance-segmentation"},
         {"pose", "pose"},
         {"obb", "oriented-detection"},
         {"classify", "classification"}}};
    for (const auto& [word, task] : kWords) {
      if (*text == word) said_.task.offer(std::string(task), "metadata 'task'");
    }
    if (!said_.task) said_.notes.push_back(str_format("not used: metadata 'task', '{}'", *text));
  }

  void offer_numbers() {
    const auto numbers = [&](const char* key) {
      const std::string* text = find(key);
      return text == nullptr ? std::vector<int>{} : integers_in(*text);
    };
    if (const auto sides = numbers("imgsz"); sides.size() == 1 || sides.size() == 2) {
      said_.height.offer(sides.front(), "metadata 'imgsz'");
      said_.width.offer(sides.back(), "metadata 'imgsz'");
    }
    if (const auto stride = numbers("stride"); stride.size() == 1 && stride[0] > 0) {
      said_.stride.offer(stride[0], "metadata 'stride'");
    }
    if (const auto shape = numbers("kpt_shape"); shape.size() == 2 && shape[0] > 0) {
      said_.keypoint_count.offer(static_cast<std::size_t>(shape[0]), "metadata 'kpt_shape'");
      said_.keypoint_values.offer(static_cast<std::size_t>(shape[1]), "metadata 'kpt_shape'");
    }
  }

  const OnnxSummary& summary_;
  Statements& said_;
};

}  // namespace

Result<Statements> gather_statements(const PrepareOptions& options,
                                     std::span<const ModelInfo> infos, const OnnxSummary& summary) {
  PENSTOCK_TRY(check_options(options));
  Statements said;
  offer_flags(options, said);
  for (const ModelInfo& info : infos) offer_info(info, said);
  Ultralytics(summary, said).offer();
  return said;
}

}  // namespace penstock
