// SPDX-License-Identifier: Apache-2.0
//
// Which family a model's outputs look like, from their shapes and what else is known of the model,
// and what such models usually take. Facts: docs/models.md, families.
//
//   auto guess = guess_family({.width = 640, .height = 640, .labels = 80, .outputs = specs});
//   // guess->family == "yolov8", guess->reason == "output 'output0' [1,84,8400] has a column ..."
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/media/preprocessor.h"
#include "penstock/memory/tensor.h"

namespace penstock {

/// Zero and empty mean that it is not known.
struct GuessInput {
  int width = 0, height = 0;  ///< Of the model's input.
  std::size_t labels = 0;
  std::span<const TensorSpec> outputs{};
  std::span<const std::string> made_by{};  ///< OnnxValueInfo's, of each output.
  /// Of each output, what is said of its values, if anything: NCHW, a plane of all objects or
  /// pixels for each value; NHWC, the values of an object or pixel together.
  std::span<const TensorLayout> layouts{};
  std::string_view layouts_from{};  ///< Who says so.
  std::string_view task{};
  std::size_t keypoints = 0;        ///< Of an object.
  std::size_t keypoint_values = 0;  ///< Of a keypoint: 2 (x, y) or 3 (and a score).
  std::optional<bool> end_to_end{};
};

struct FamilyGuess {
  std::string family{};
  std::size_t classes = 0;    ///< 0: the shapes don't tell.
  std::size_t keypoints = 0;  ///< Of an object; 0: none.
  std::string reason{};       ///< For the user: which output, which shape.
  /// Of a map of scores, where GuessInput says it.
  TensorLayout map_layout = TensorLayout::kAny;
};

/// kUnsupported lists the outputs, and names the flag that would decide between what is possible.
/// kInvalidArgument: what is said of the outputs' layouts contradicts the only family that fits.
Result<FamilyGuess> guess_family(const GuessInput& input);

/// The same for a family that is given. kInvalidArgument: there is none of that name, or the
/// outputs are not its; the message has both.
Result<FamilyGuess> fit_family(std::string_view family, const GuessInput& input);

/// Whether a map of that type has the class of each pixel itself, not the scores of the classes.
bool has_class_numbers(const TensorSpec& output);

/// Empty when there is no such family.
std::string_view task_of_family(std::string_view family);
/// "nanodet, yolov5, ...".
std::string known_families();

/// What the family's usual exporters take; nothing where they differ.
std::optional<PreprocessSpec> family_preprocess(std::string_view family);

/// COCO's names for 17, else "keypoint 0", ...
std::vector<std::string> usual_keypoints(std::size_t count);

/// BlazeFace's six, in its order; left and right are the person's own.
std::vector<std::string> face_keypoints();

/// "{0: 'person', 1: 'car'}" as Ultralytics writes it: the values in the order of keys 0, 1, ...;
/// empty when it is anything else.
std::vector<std::string> labels_of_dictionary(std::string_view text);

/// The unsigned integers of "[640, 480]", each at most 65536; at most 8.
std::vector<int> integers_in(std::string_view text);

}  // namespace penstock
