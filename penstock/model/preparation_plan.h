// SPDX-License-Identifier: Apache-2.0
//
// The steps of plan_preparation, in their order. Each takes what is said, decides its part of the
// manifest, and notes it with its source.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/model/family_guess.h"
#include "penstock/model/onnx_reader.h"
#include "penstock/model/preparation.h"
#include "penstock/model/statements.h"

namespace penstock {

struct PlanState {
  const OnnxSummary& summary;
  const PrepareOptions& options;
  std::span<const ModelInfo> infos;
  const Statements& said;
  Preparation& plan;
  std::vector<std::string> made_by{};  ///< Of the manifest's outputs.
  /// What a file says of the picture and of each output, as GuessInput has it.
  TensorLayout picture_layout = TensorLayout::kAny;
  std::vector<TensorLayout> layouts{};
  std::string layouts_from{};
  FamilyGuess guess{};
  std::string missing{};  ///< What only the user knows, of all steps, to be asked for at once.

  Manifest& manifest() const { return plan.manifest; }
  void note(std::string text) const { plan.notes.push_back(std::move(text)); }
};

/// Which provider runs the model: flags only, files say nothing of it.
Result<void> plan_engine(PlanState& state);
Result<void> plan_tensors(PlanState& state);
/// Layout and size of the picture; sides that the model leaves open are fixed.
Result<void> plan_size(PlanState& state);
Result<void> plan_family(PlanState& state);
Result<void> plan_labels(PlanState& state);
/// Keypoints, scores and the other settings of the task; flags of other tasks are refused.
Result<void> plan_task(PlanState& state);
Result<void> plan_normalisation(PlanState& state);
void plan_licence(PlanState& state);

inline std::unexpected<Error> ask(std::string what) {
  return fail(ErrorKind::kUnsupported, std::move(what));
}
/// A flag that must be given; the steps go on, so that all are asked for at once.
inline void ask_later(PlanState& state, const std::string& what) {
  state.missing += (state.missing.empty() ? "" : "; ") + what;
}
inline std::unexpected<Error> contradiction(std::string what) {
  return fail(ErrorKind::kInvalidArgument, std::move(what));
}

}  // namespace penstock
