// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/family_fits.h"

#include <algorithm>
#include <tuple>

#include "penstock/base/str_format.h"
#include "penstock/model/manifest.h"

namespace penstock {
namespace {

constexpr std::int64_t kMoveNetKeypoints = 17;
constexpr std::int64_t kMostMapClasses = 256;

std::size_t rank(const TensorSpec& spec) { return spec.dims.size(); }

/// The only output, when it has that rank.
const TensorSpec* single(const GuessInput& input, std::size_t wanted_rank) {
  const bool fits = input.outputs.size() == 1 && rank(input.outputs[0]) == wanted_rank;
  return fits ? &input.outputs[0] : nullptr;
}

FamilyGuess made(const TensorSpec& output, std::int64_t classes, std::string_view why) {
  return {.classes = classes > 0 ? static_cast<std::size_t>(classes) : 0,
          .reason = str_format("output {} {}", shape_text(output), why)};
}

/// Boxes or columns of rank 3, and prototypes [N, masks, h, w].
struct Masks {
  const TensorSpec* boxes = nullptr;
  std::int64_t count = 0;
};
std::optional<Masks> masks_of(const GuessInput& input) {
  if (input.outputs.size() != 2) return std::nullopt;
  const bool first = rank(input.outputs[0]) == 3;
  const TensorSpec& boxes = input.outputs[first ? 0 : 1];
  const TensorSpec& prototypes = input.outputs[first ? 1 : 0];
  if (rank(boxes) != 3 || rank(prototypes) != 4 || side_of(prototypes, 1) < 1) return std::nullopt;
  return Masks{&boxes, side_of(prototypes, 1)};
}

struct Pose {
  std::int64_t classes, keypoints;
};
/// How `values` are classes, and keypoints of two or three values each; nothing when they can't be
/// or when several ways are as good.
std::optional<Pose> pose_of(const GuessInput& input, std::int64_t values, bool has_classes) {
  const auto keypoints = static_cast<std::int64_t>(input.keypoints);
  const std::int64_t each = static_cast<std::int64_t>(input.keypoint_values);
  // Without labels one class, the person or thing whose keypoints they are.
  const std::int64_t classes =
      has_classes ? std::max<std::int64_t>(static_cast<std::int64_t>(input.labels), 1) : 0;
  const auto fits = [&](std::int64_t count, std::int64_t parts) {
    return count >= 1 && count <= static_cast<std::int64_t>(kMaxKeypoints) &&
           (each == 0 || parts == each) && classes + count * parts == values;
  };
  if (keypoints > 0) {
    for (const std::int64_t parts : {3, 2}) {
      if (fits(keypoints, parts)) return Pose{classes, keypoints};
    }
    return std::nullopt;
  }
  const std::int64_t rest = values - classes;
  const bool three = rest % 3 == 0 && fits(rest / 3, 3);
  const bool two = rest % 2 == 0 && fits(rest / 2, 2);
  if (three && rest / 3 == kMoveNetKeypoints) return Pose{classes, kMoveNetKeypoints};
  if (two && rest / 2 == kMoveNetKeypoints) return Pose{classes, kMoveNetKeypoints};
  if (three != two) return Pose{classes, three ? rest / 3 : rest / 2};
  return std::nullopt;
}

FamilyGuess posed(const TensorSpec& output, const Pose& pose, std::string_view why) {
  FamilyGuess guess =
      made(output, pose.classes, str_format("{}, {} keypoints each", why, pose.keypoints));
  guess.keypoints = static_cast<std::size_t>(pose.keypoints);
  return guess;
}

/// Whether sides `row` and `column` can be a map of the picture.
bool is_map(const GuessInput& input, const TensorSpec& spec, std::size_t row, std::size_t column) {
  const std::int64_t height = side_of(spec, row), width = side_of(spec, column);
  if (height == 1 || width == 1) return false;
  return height < 0 || width < 0 || height * input.width == width * input.height;
}

/// The number of values of one item: [N,C], [N,C,1,1] or [N,1,1,C].
std::optional<std::int64_t> vector_size(const GuessInput& input) {
  if (const TensorSpec* flat = single(input, 2)) return side_of(*flat, 1);
  const TensorSpec* deep = single(input, 4);
  if (deep == nullptr) return std::nullopt;
  if (side_of(*deep, 2) == 1 && side_of(*deep, 3) == 1) return side_of(*deep, 1);
  if (side_of(*deep, 1) == 1 && side_of(*deep, 2) == 1) return side_of(*deep, 3);
  return std::nullopt;
}

}  // namespace

std::int64_t side_of(const TensorSpec& spec, std::size_t i) {
  return i < spec.dims.size() && spec.dims[i].is_fixed() ? spec.dims[i].minimum : -1;
}

bool has_class_numbers(const TensorSpec& output) {
  return output.type == DataType::kInt32 || output.type == DataType::kInt64 ||
         output.type == DataType::kUint8 || output.type == DataType::kInt8;
}

std::string shape_text(const TensorSpec& spec) {
  std::string text;
  for (std::size_t i = 0; i < spec.dims.size(); ++i) {
    text += i == 0 ? "" : ",";
    text += side_of(spec, i) < 0 ? "?" : std::to_string(side_of(spec, i));
  }
  return str_format("'{}' [{}]{}", spec.name, text,
                    has_class_numbers(spec) ? str_format(" of {}", to_string(spec.type)) : "");
}

FamilyFit fit_nanodet(const GuessInput& input) {
  if (input.outputs.size() != 6) return std::nullopt;
  std::int64_t classes = 0;
  int distributions = 0;
  for (const TensorSpec& output : input.outputs) {
    if (rank(output) != 3) return std::nullopt;
    if (side_of(output, 2) == 44) {
      ++distributions;
    } else {
      classes = side_of(output, 2);
    }
  }
  if (distributions != 3 || classes < 1) return std::nullopt;
  return FamilyGuess{.classes = static_cast<std::size_t>(classes),
                     .reason = "six outputs, three of them box distributions of 44 values"};
}

FamilyFit fit_ssd(const GuessInput& input) {
  const auto& outputs = input.outputs;
  const TensorSpec* list = single(input, 4);
  if (list != nullptr && side_of(*list, 3) == 7) {
    return made(*list, 0, "is a list of seven values a box");
  }
  if (outputs.size() != 4) return std::nullopt;
  const auto boxes = std::ranges::count_if(
      outputs, [](const TensorSpec& o) { return rank(o) == 3 && side_of(o, 2) == 4; });
  const auto lists = std::ranges::count_if(
      outputs, [](const TensorSpec& o) { return rank(o) == 2 || rank(o) == 1; });
  if (boxes != 1 || lists != 3) return std::nullopt;
  return FamilyGuess{.reason = "four outputs: boxes, and three lists"};
}

FamilyFit fit_rtdetr(const GuessInput& input) {
  if (const TensorSpec* output = single(input, 3)) {
    const std::int64_t third = side_of(*output, 2);
    if (third > 4) return made(*output, third - 4, "has a row a query: box and the classes");
    return std::nullopt;
  }
  if (input.outputs.size() != 2) return std::nullopt;
  for (const std::size_t boxes : {std::size_t{1}, std::size_t{0}}) {
    const TensorSpec& logits = input.outputs[1 - boxes];
    if (rank(logits) == 3 && rank(input.outputs[boxes]) == 3 &&
        side_of(input.outputs[boxes], 2) == 4 && side_of(logits, 2) > 0) {
      return FamilyGuess{.classes = static_cast<std::size_t>(side_of(logits, 2)),
                         .reason = str_format("logits {} and boxes {}", shape_text(logits),
                                              shape_text(input.outputs[boxes]))};
    }
  }
  return std::nullopt;
}

FamilyFit fit_yolov8(const GuessInput& input) {
  const TensorSpec* output = single(input, 3);
  if (output == nullptr) return std::nullopt;
  const std::int64_t second = side_of(*output, 1);
  if (second >= 0 && second <= 4) return std::nullopt;
  return made(*output, second - 4, "has a column a cell: four box values and the classes");
}

FamilyFit fit_yolov5(const GuessInput& input) {
  const TensorSpec* output = single(input, 3);
  if (output == nullptr || side_of(*output, 2) <= 5) return std::nullopt;
  return made(*output, side_of(*output, 2) - 5,
              "has three rows a cell: box, objectness and the classes");
}

FamilyFit fit_yolox(const GuessInput& input) {
  const TensorSpec* output = single(input, 3);
  if (output == nullptr || side_of(*output, 2) <= 5) return std::nullopt;
  return made(*output, side_of(*output, 2) - 5,
              "has a row a cell: box, objectness and the classes");
}

FamilyFit fit_end_to_end(const GuessInput& input) {
  const TensorSpec* output = single(input, 3);
  if (output == nullptr || side_of(*output, 2) != 6) return std::nullopt;
  return made(*output, 0, "has corners, score and class of each box");
}

FamilyFit fit_yolov8_seg(const GuessInput& input) {
  const auto masks = masks_of(input);
  if (!masks) return std::nullopt;
  const std::int64_t classes = side_of(*masks->boxes, 1) - 4 - masks->count;
  if (classes < 1) return std::nullopt;
  return made(*masks->boxes, classes,
              str_format("has a column a cell: four box values, the classes and {} mask values",
                         masks->count));
}

FamilyFit fit_end_to_end_seg(const GuessInput& input) {
  const auto masks = masks_of(input);
  if (!masks || side_of(*masks->boxes, 2) != 6 + masks->count) return std::nullopt;
  return made(*masks->boxes, 0,
              str_format("has corners, score, class and {} mask values of each box", masks->count));
}

FamilyFit fit_yolov8_pose(const GuessInput& input) {
  const TensorSpec* output = single(input, 3);
  if (output == nullptr || side_of(*output, 1) < 0) return std::nullopt;
  const auto pose = pose_of(input, side_of(*output, 1) - 4, true);
  if (!pose) return std::nullopt;
  return posed(*output, *pose, "has a column a cell: four box values, the classes");
}

FamilyFit fit_end_to_end_pose(const GuessInput& input) {
  const TensorSpec* output = single(input, 3);
  if (output == nullptr || side_of(*output, 2) < 0) return std::nullopt;
  const auto pose = pose_of(input, side_of(*output, 2) - 6, false);
  if (!pose) return std::nullopt;
  return posed(*output, *pose, "has corners, score and class of each box");
}

FamilyFit fit_movenet(const GuessInput& input) {
  const TensorSpec* one = single(input, 4);
  const TensorSpec* several = single(input, 3);
  const bool fits = (one != nullptr && side_of(*one, 1) == 1 &&
                     side_of(*one, 2) == kMoveNetKeypoints && side_of(*one, 3) == 3) ||
                    (several != nullptr && side_of(*several, 1) == 6 && side_of(*several, 2) == 56);
  if (!fits) return std::nullopt;
  return posed(input.outputs[0], {.classes = 1, .keypoints = kMoveNetKeypoints},
               "is MoveNet's list of people");
}

FamilyFit fit_yolov8_obb(const GuessInput& input) {
  const TensorSpec* output = single(input, 3);
  if (output == nullptr || side_of(*output, 1) <= 5) return std::nullopt;
  return made(*output, side_of(*output, 1) - 5,
              "has a column a cell: four box values, the classes and the angle");
}

FamilyFit fit_end_to_end_obb(const GuessInput& input) {
  const TensorSpec* output = single(input, 3);
  if (output == nullptr || side_of(*output, 2) != 7) return std::nullopt;
  return made(*output, 0, "has box, score, class and angle of each box");
}

FamilyFit fit_classification(const GuessInput& input) {
  const auto size = vector_size(input);
  if (!size || *size == 0) return std::nullopt;
  return made(input.outputs[0], *size, "has a score a class");
}

FamilyFit fit_embedding(const GuessInput& input) {
  const auto size = vector_size(input);
  if (!size || *size == 0) return std::nullopt;
  return made(input.outputs[0], 0, "is one vector a picture");
}

FamilyFit fit_semantic(const GuessInput& input) {
  const TensorSpec* flat = single(input, 3);
  if (flat != nullptr && has_class_numbers(*flat)) {
    return made(*flat, 0, "has the class of every pixel");
  }
  const TensorSpec* map = single(input, 4);
  if (map == nullptr) return std::nullopt;
  const TensorLayout said = input.layouts.empty() ? TensorLayout::kAny : input.layouts[0];
  for (const auto& [layout, axis, row] :
       {std::tuple(TensorLayout::kNchw, 1, 2), std::tuple(TensorLayout::kNhwc, 3, 1)}) {
    const std::int64_t channels = side_of(*map, static_cast<std::size_t>(axis));
    const auto rows = static_cast<std::size_t>(row);
    if (channels < 1 || channels > kMostMapClasses || !is_map(input, *map, rows, rows + 1)) {
      continue;
    }
    // One channel lies in memory as either says.
    if (channels == 1) {
      return has_class_numbers(*map)
                 ? made(*map, 0, "has the class of every pixel")
                 : made(*map, 2, "has the score of the foreground at every pixel");
    }
    if (has_class_numbers(*map) || (said != TensorLayout::kAny && said != layout)) continue;
    FamilyGuess guess = made(*map, channels, "has a score a class at every pixel");
    guess.map_layout = said;
    return guess;
  }
  return std::nullopt;
}

FamilyFit fit_blazeface(const GuessInput& input) {
  const auto has = [&](std::int64_t anchors, std::int64_t values) {
    return std::ranges::count_if(input.outputs, [&](const TensorSpec& o) {
             return rank(o) == 3 && side_of(o, 1) == anchors && side_of(o, 2) == values;
           }) == 1;
  };
  const bool two = input.outputs.size() == 2 && has(896, 1) && has(896, 16);
  const bool four =
      input.outputs.size() == 4 && has(512, 1) && has(512, 16) && has(384, 1) && has(384, 16);
  if (!two && !four) return std::nullopt;
  return FamilyGuess{.classes = 1,
                     .keypoints = 6,
                     .reason = "logits and 16 values of each of BlazeFace's 896 anchors"};
}

FamilyFit fit_db_text(const GuessInput& input) {
  const TensorSpec* map = single(input, 4);
  if (map == nullptr || side_of(*map, 1) != 1 || !is_map(input, *map, 2, 3)) return std::nullopt;
  return made(*map, 1, "has the probability of text at every pixel");
}

FamilyFit fit_ctc(const GuessInput& input) {
  const TensorSpec* output = single(input, 3);
  if (output == nullptr || has_class_numbers(*output) || side_of(*output, 2) < 2)
    return std::nullopt;
  return made(*output, side_of(*output, 2), "has a score a character and blank at every step");
}

FamilyFit fit_raw(const GuessInput&) {
  return FamilyGuess{.reason = "outputs are kept as they are"};
}

}  // namespace penstock
