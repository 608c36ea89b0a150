// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/family_guess.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "penstock/base/str_format.h"
#include "penstock/model/family_fits.h"

namespace penstock {
namespace {

/// More boxes than an end-to-end head or a transformer answers; grids have more rows.
constexpr std::int64_t kMostQueries = 1500;

std::int64_t grid_cells(const GuessInput& input) {
  std::int64_t cells = 0;
  for (const int stride : {8, 16, 32}) {
    cells += std::int64_t{input.width / stride} * (input.height / stride);
  }
  return cells;
}

std::int64_t labels_of(const GuessInput& input) { return static_cast<std::int64_t>(input.labels); }
std::int64_t second(const GuessInput& input) { return side_of(input.outputs[0], 1); }
std::int64_t third(const GuessInput& input) { return side_of(input.outputs[0], 2); }

bool is_made_by(const GuessInput& input, std::string_view operation) {
  return std::ranges::find(input.made_by, operation) != input.made_by.end();
}

bool is_named(const GuessInput& input, std::initializer_list<std::string_view> words) {
  std::string name = input.outputs[0].name;
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return std::ranges::any_of(
      words, [&](std::string_view word) { return name.find(word) != std::string::npos; });
}

// Whether outputs that can be a family's are likely to be, among those of the known task. Some
// layouts can be told apart by the size of the model's input only.

bool always(const GuessInput&, const FamilyGuess&) { return true; }
bool when_asked(const GuessInput& input, const FamilyGuess&) { return !input.task.empty(); }

bool has_columns(const GuessInput& input) {
  const std::int64_t rows = third(input), values = second(input);
  return values > 0 && (rows == grid_cells(input) || (rows < 0 && !input.task.empty()) ||
                        (rows < 0 && values == 4 + labels_of(input)) || rows > 2 * values);
}
bool has_queries(const GuessInput& input) {
  return second(input) > 0 && second(input) <= kMostQueries;
}

bool tells_yolov8(const GuessInput& input, const FamilyGuess& guess) {
  return guess.classes > 0 && has_columns(input);
}
bool tells_yolov5(const GuessInput& input, const FamilyGuess&) {
  return second(input) == 3 * grid_cells(input);
}
bool tells_yolox(const GuessInput& input, const FamilyGuess&) {
  return second(input) == grid_cells(input);
}
bool tells_end_to_end(const GuessInput& input, const FamilyGuess&) {
  // One class makes six values of a grid's row, two make six of a query.
  const bool grid = second(input) == grid_cells(input) || second(input) == 3 * grid_cells(input);
  const bool other = input.labels == 2 || (input.labels == 1 && grid);
  return has_queries(input) && (input.end_to_end.value_or(false) || !other);
}
bool tells_rtdetr(const GuessInput& input, const FamilyGuess&) {
  return input.outputs.size() == 2 || has_queries(input);
}
bool tells_pose(const GuessInput& input, const FamilyGuess&) {
  return (input.task == "pose" || input.keypoints > 0) && has_columns(input);
}
bool tells_end_to_end_pose(const GuessInput& input, const FamilyGuess&) {
  return (input.task == "pose" || input.keypoints > 0) && has_queries(input);
}
bool tells_obb(const GuessInput& input, const FamilyGuess& guess) {
  return when_asked(input, guess) && has_columns(input);
}
bool tells_end_to_end_obb(const GuessInput& input, const FamilyGuess& guess) {
  return when_asked(input, guess) && has_queries(input);
}
bool tells_seg(const GuessInput& input, const FamilyGuess&) {
  return input.end_to_end != std::optional(true);
}
bool tells_classification(const GuessInput& input, const FamilyGuess& guess) {
  return !input.task.empty() || is_made_by(input, "Softmax") ||
         (input.labels > 0 && guess.classes == input.labels) ||
         is_named(input, {"logit", "prob", "score", "class"});
}
bool tells_embedding(const GuessInput& input, const FamilyGuess&) {
  return !input.task.empty() || is_made_by(input, "LpNormalization") ||
         is_named(input, {"embed", "feat"});
}
bool tells_semantic(const GuessInput& input, const FamilyGuess& guess) {
  if (!input.task.empty() || guess.classes == 0) return true;
  // Three channels, or one, may be a picture or a depth.
  return guess.classes == input.labels || guess.classes > 3 || is_made_by(input, "Softmax") ||
         is_made_by(input, "Sigmoid");
}

struct Family {
  std::string_view name;
  std::string_view task;
  TensorLayout values;  ///< As GuessInput has them; kAny where nothing can be said of it.
  std::string_view layout;
  FamilyFit (*fit)(const GuessInput&);
  bool (*tells)(const GuessInput&, const FamilyGuess&);
};

/// The first that is likely is taken.
constexpr std::array kFamilies{
    Family{"nanodet", "detection", TensorLayout::kNhwc,
           "[N, cells, classes] and [N, cells, 44] of three strides", fit_nanodet, always},
    Family{"ssd", "detection", TensorLayout::kNhwc,
           "[1, 1, boxes, 7], or boxes, classes, scores and count", fit_ssd, always},
    Family{"yolo-end-to-end-seg", "instance-segmentation", TensorLayout::kNhwc,
           "[N, boxes, 6 + masks] and [N, masks, h, w]", fit_end_to_end_seg, always},
    Family{"yolov8-seg", "instance-segmentation", TensorLayout::kNchw,
           "[N, 4 + classes + masks, rows] and [N, masks, h, w]", fit_yolov8_seg, tells_seg},
    Family{"blazeface", "pose", TensorLayout::kNhwc,
           "[N, 512, 1], [N, 384, 1], [N, 512, 16] and [N, 384, 16], or [N, 896, 1] and [N, 896, "
           "16]",
           fit_blazeface, always},
    Family{"movenet", "pose", TensorLayout::kNhwc, "[N, 1, 17, 3] or [N, 6, 56]", fit_movenet,
           always},
    Family{"yolov8-pose", "pose", TensorLayout::kNchw,
           "[N, 4 + classes + keypoints x 2 or 3, rows]", fit_yolov8_pose, tells_pose},
    Family{"yolo-end-to-end-pose", "pose", TensorLayout::kNhwc,
           "[N, boxes, 6 + keypoints x 2 or 3]", fit_end_to_end_pose, tells_end_to_end_pose},
    Family{"yolo-end-to-end", "detection", TensorLayout::kNhwc, "[N, boxes, 6]", fit_end_to_end,
           tells_end_to_end},
    Family{"yolov8", "detection", TensorLayout::kNchw, "[N, 4 + classes, rows]", fit_yolov8,
           tells_yolov8},
    Family{"yolov5", "detection", TensorLayout::kNhwc, "[N, rows, 5 + classes]", fit_yolov5,
           tells_yolov5},
    Family{"yolox", "detection", TensorLayout::kNhwc, "[N, cells, 5 + classes]", fit_yolox,
           tells_yolox},
    Family{"rtdetr", "detection", TensorLayout::kNhwc,
           "[N, queries, 4 + classes], or logits and boxes", fit_rtdetr, tells_rtdetr},
    Family{"yolo-end-to-end-obb", "oriented-detection", TensorLayout::kNhwc, "[N, boxes, 7]",
           fit_end_to_end_obb, tells_end_to_end_obb},
    Family{"yolov8-obb", "oriented-detection", TensorLayout::kNchw, "[N, 4 + classes + 1, rows]",
           fit_yolov8_obb, tells_obb},
    Family{"db-text", "oriented-detection", TensorLayout::kAny, "[N, 1, h, w]", fit_db_text,
           when_asked},
    Family{"ctc", "text-recognition", TensorLayout::kNhwc, "[N, steps, classes]", fit_ctc,
           when_asked},
    Family{"embedding", "embedding", TensorLayout::kAny, "[N, values] or [N, values, 1, 1]",
           fit_embedding, tells_embedding},
    Family{"classification", "classification", TensorLayout::kAny,
           "[N, classes], [N, classes, 1, 1] or [N, 1, 1, classes]", fit_classification,
           tells_classification},
    Family{"semantic", "semantic-segmentation", TensorLayout::kAny,
           "[N, classes, h, w], [N, h, w, classes] or integers [N, h, w]", fit_semantic,
           tells_semantic},
    Family{"raw", "raw", TensorLayout::kAny, "any", fit_raw, when_asked},
};

std::string shapes_text(const GuessInput& input) {
  std::string shapes;
  for (const TensorSpec& output : input.outputs) {
    shapes += (shapes.empty() ? "" : ", ") + shape_text(output);
  }
  return shapes;
}

std::unexpected<Error> unknown(const GuessInput& input) {
  const std::string shapes = shapes_text(input);
  std::string help = "give --family if you know it";
  if (input.task.empty() && fit_classification(input)) {
    return fail(ErrorKind::kUnsupported,
                str_format("outputs like {} may be classes or an embedding; give --task "
                           "classification (and --labels) or --task embedding, or --family raw, "
                           "which keeps the outputs as they are",
                           shapes));
  }
  if (input.task.empty() && fit_semantic(input)) {
    help = "give --task semantic-segmentation if the values are scores of classes";
  }
  return fail(
      ErrorKind::kUnsupported,
      str_format("no known family{} has outputs like {}; {}, or --family raw, which keeps "
                 "the outputs as they are",
                 input.task.empty() ? "" : str_format(" of task {}", input.task), shapes, help));
}

/// What the family's layout makes of the outputs. A single one of integers has no scores.
FamilyFit fit(const Family& family, const GuessInput& input) {
  const bool numbers = input.outputs.size() == 1 && has_class_numbers(input.outputs[0]);
  if (numbers && family.task != "semantic-segmentation" && family.task != "raw") {
    return std::nullopt;
  }
  return family.fit(input);
}

/// The first output that is said to be planes, but whose values lie together in this family. That
/// they lie together is what holds where nothing is said, and contradicts nothing.
std::optional<std::size_t> other_layout(const Family& family, const GuessInput& input) {
  for (std::size_t i = 0; i < input.layouts.size(); ++i) {
    const std::size_t rank = input.outputs[i].dims.size();
    const bool prototypes = family.task == "instance-segmentation" && rank == 4;
    const TensorLayout values = prototypes ? TensorLayout::kNchw : family.values;
    if (rank >= 3 && input.layouts[i] == TensorLayout::kNchw && values == TensorLayout::kNhwc)
      return i;
  }
  return std::nullopt;
}

bool says_planes(const GuessInput& input) {
  return std::ranges::find(input.layouts, TensorLayout::kNchw) != input.layouts.end();
}

GuessInput without_layouts(const GuessInput& input) {
  GuessInput plain = input;
  plain.layouts = {};
  return plain;
}

/// What is said of layouts is not so in what the outputs look like.
std::unexpected<Error> contradicts_layout(const GuessInput& input, const FamilyGuess& guess) {
  const auto family = std::ranges::find(kFamilies, guess.family, &Family::name);
  const std::size_t output = other_layout(*family, input).value_or(0);
  return fail(
      ErrorKind::kInvalidArgument,
      str_format("{} says that '{}' is col-major, but {}, as family '{}' has, which is "
                 "row-major; give --family, or mend what is wrong",
                 input.layouts_from, input.outputs[output].name, guess.reason, guess.family));
}

}  // namespace

Result<FamilyGuess> guess_family(const GuessInput& input) {
  if (input.outputs.empty()) return fail(ErrorKind::kUnsupported, "the model has no output");
  for (const Family& family : kFamilies) {
    if (!input.task.empty() && input.task != family.task) continue;
    auto guess = fit(family, input);
    if (!guess || !family.tells(input, *guess)) continue;
    // 4 + 1 + 17 x 3: people with keypoints, or 52 classes.
    if (family.name == "yolov8" && guess->classes == 52 && input.task.empty() &&
        input.labels == 0) {
      return fail(ErrorKind::kUnsupported,
                  str_format("outputs like {} may be 52 classes or 17 keypoints; give --task "
                             "detection or --task pose",
                             shapes_text(input)));
    }
    guess->family = family.name;
    if (other_layout(family, input)) return contradicts_layout(input, *guess);
    return *guess;
  }
  if (!input.layouts.empty()) {
    // A map whose classes are not where they are said to be.
    if (const auto other = guess_family(without_layouts(input))) {
      if (says_planes(input)) return contradicts_layout(input, *other);
      return *other;
    }
  }
  return unknown(input);
}

Result<FamilyGuess> fit_family(std::string_view name, const GuessInput& input) {
  const auto family = std::ranges::find(kFamilies, name, &Family::name);
  if (family == kFamilies.end()) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("there is no family '{}'; there are {}", name, known_families()));
  }
  auto guess = fit(*family, input);
  if (!guess || other_layout(*family, input)) {
    if (auto other = fit(*family, without_layouts(input)); other && !input.layouts.empty()) {
      other->family = family->name;
      if (says_planes(input)) return contradicts_layout(input, *other);
      return *other;
    }
    return fail(ErrorKind::kInvalidArgument,
                str_format("outputs {} do not fit family '{}', whose are {}", shapes_text(input),
                           name, family->layout));
  }
  guess->family = family->name;
  return *guess;
}

std::string_view task_of_family(std::string_view name) {
  const auto family = std::ranges::find(kFamilies, name, &Family::name);
  return family == kFamilies.end() ? std::string_view() : family->task;
}

std::string known_families() {
  std::string names;
  for (const Family& family : kFamilies) {
    names += names.empty() ? "" : ", ";
    names += family.name;
  }
  return names;
}

}  // namespace penstock
