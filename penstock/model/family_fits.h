// SPDX-License-Identifier: Apache-2.0
//
// One function a family: what its layout makes of a model's outputs, nothing when they can't be
// its. They say what is possible; guess_family says what is likely.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "penstock/model/family_guess.h"

namespace penstock {

/// The fixed size of a dimension, -1 when it is open or not there.
std::int64_t side_of(const TensorSpec& spec, std::size_t i);
/// "'output0' [1,84,?]", and for integers their type.
std::string shape_text(const TensorSpec& spec);

using FamilyFit = std::optional<FamilyGuess>;
FamilyFit fit_nanodet(const GuessInput& input);
FamilyFit fit_yolov5(const GuessInput& input);
FamilyFit fit_yolov8(const GuessInput& input);
FamilyFit fit_end_to_end(const GuessInput& input);
FamilyFit fit_yolox(const GuessInput& input);
FamilyFit fit_rtdetr(const GuessInput& input);
FamilyFit fit_ssd(const GuessInput& input);
FamilyFit fit_yolov8_seg(const GuessInput& input);
FamilyFit fit_end_to_end_seg(const GuessInput& input);
FamilyFit fit_yolov8_pose(const GuessInput& input);
FamilyFit fit_end_to_end_pose(const GuessInput& input);
FamilyFit fit_movenet(const GuessInput& input);
FamilyFit fit_yolov8_obb(const GuessInput& input);
FamilyFit fit_end_to_end_obb(const GuessInput& input);
FamilyFit fit_classification(const GuessInput& input);
FamilyFit fit_semantic(const GuessInput& input);
FamilyFit fit_embedding(const GuessInput& input);
FamilyFit fit_raw(const GuessInput& input);
FamilyFit fit_blazeface(const GuessInput& input);
FamilyFit fit_db_text(const GuessInput& input);
FamilyFit fit_ctc(const GuessInput& input);

}  // namespace penstock
