// SPDX-License-Identifier: Apache-2.0
//
// Preparation: which family the model is of, and what its task needs.
#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "penstock/base/str_format.h"
#include "penstock/model/manifest_parser.h"
#include "penstock/model/preparation_plan.h"

namespace penstock {
namespace {

bool finds_boxes(std::string_view task) {
  return std::ranges::find(kTasks, task) - kTasks.begin() < 4;
}
bool has_scores(std::string_view task) {
  return task == "classification" || task == "semantic-segmentation" || task == "text-recognition";
}

/// The family that is said and the task that is said, of which the weaker gives way to a flag.
struct Wanted {
  std::string family{};
  std::string task{};
};
Result<Wanted> wanted_of(const PlanState& state) {
  const auto& [task, family] = std::tie(state.said.task, state.said.family);
  Wanted wanted{.family = family ? *family : "", .task = task ? *task : ""};
  if (!task || !family) return wanted;
  const std::string_view of_family = task_of_family(*family);
  if (of_family == *task || of_family.empty()) return wanted;
  if (family.is_flag == task.is_flag) {
    return contradiction(str_format("family '{}' ({}) is of task {}, but {} says {}", *family,
                                    family.source, of_family, task.source, *task));
  }
  const auto& [winner, loser] = family.is_flag ? std::pair(family.source, task.source)
                                               : std::pair(task.source, family.source);
  state.note(str_format("not used: {}, as {} says otherwise", loser, winner));
  (family.is_flag ? wanted.task : wanted.family).clear();
  return wanted;
}

Result<void> check_end_to_end(const PlanState& state) {
  const Stated<bool>& stated = state.said.end_to_end;
  const std::string& family = state.guess.family;
  const bool yolo = family.starts_with("yolo");
  if (!stated || !*stated || !yolo || family.starts_with("yolo-end-to-end")) return {};
  if (state.said.family && state.said.family.is_flag) return {};
  return contradiction(
      str_format("{} says that the model suppresses overlaps itself, but {} is "
                 "what family '{}' has; give --family",
                 stated.source, state.guess.reason, family));
}

/// A family that is said has to fit, and only a flag may say another than the shapes, or a file.
Result<FamilyGuess> said_family(const PlanState& state, GuessInput input,
                                const std::string& family) {
  const Stated<std::string>& stated = state.said.family;
  auto guess = fit_family(family, input);
  if (!guess && stated.is_flag && !input.layouts.empty()) {
    input.layouts = {};
    guess = fit_family(family, input);
    if (guess) {
      state.note(str_format("not used: dims-order ({}), as {} says otherwise", state.layouts_from,
                            stated.source));
    }
  }
  if (!guess) return std::unexpected(std::move(guess).error().context(stated.source));
  const auto other = guess_family(input);
  if (other && other->family != family) {
    const std::string text = str_format("{} says family '{}', but {}, as family '{}' has",
                                        stated.source, family, other->reason, other->family);
    if (!stated.is_flag) return contradiction(text + "; give --family");
    state.note(text);
  }
  guess->reason = stated.source;
  return guess;
}

std::string usual_label(const PlanState& state, std::size_t i) {
  if (state.manifest().family == "blazeface") return "face";
  if (state.manifest().family == "db-text") return "text";
  if (state.manifest().task == "pose" && state.guess.keypoints == 17) return "person";
  return str_format("class {}", i);
}

Result<void> refuse_flags(const PlanState& state) {
  const PrepareOptions& options = state.options;
  const std::string& task = state.manifest().task;
  struct Flag {
    const char* name;
    bool is_given, has_use;
  };
  const bool boxes = finds_boxes(task);
  for (const Flag& flag : {
           Flag{"--keypoints", !options.keypoints.empty(), task == "pose"},
           Flag{"--scores", options.scores.has_value(), has_scores(task)},
           Flag{"--top-k", options.top_k.has_value(), task == "classification"},
           Flag{"--normalise", options.normalise, task == "embedding"},
           Flag{"--class-agnostic", options.class_agnostic, boxes},
           Flag{"--iou-threshold", options.iou_threshold.has_value(), boxes},
           Flag{"--threshold", options.threshold.has_value(), boxes || has_scores(task)},
           Flag{"--labels", !options.labels.empty(), task != "embedding" && task != "raw"},
       }) {
    if (flag.is_given && !flag.has_use) {
      return contradiction(str_format("{} has no use in task {}, which family '{}' is of",
                                      flag.name, task, state.manifest().family));
    }
  }
  return {};
}

Result<void> take_keypoints(PlanState& state) {
  Manifest& manifest = state.manifest();
  if (manifest.task != "pose") return {};
  const Stated<std::vector<std::string>>& names = state.said.keypoints;
  const Stated<std::size_t>& count = state.said.keypoint_count;
  const std::size_t found = state.guess.keypoints;
  if (count && *count != found) {
    return contradiction(
        str_format("{} keypoints ({}), but the outputs have {}", *count, count.source, found));
  }
  const bool face = manifest.family == "blazeface";
  manifest.keypoints = names ? *names : face ? face_keypoints() : usual_keypoints(found);
  state.note(str_format("keypoints: {} ({})", found,
                        names         ? names.source
                        : face        ? "BlazeFace's names"
                        : found == 17 ? "COCO's names, as is usual for 17"
                                      : "no names given; give --keypoints FILE"));
  return {};
}

Result<void> take_scores(PlanState& state) {
  Manifest& manifest = state.manifest();
  if (!has_scores(manifest.task)) return {};
  const std::string maker = state.made_by.empty() ? "" : state.made_by[0];
  const bool finished = maker == "Softmax" || maker == "Sigmoid";
  const Stated<ScoreKind>& said = state.said.scores;
  const bool indices =
      manifest.task == "semantic-segmentation" && has_class_numbers(manifest.outputs[0]);
  if (said && *said == ScoreKind::kLogits && (finished || indices)) {
    return contradiction(str_format("{} says logits, but output '{}' {}", said.source,
                                    manifest.outputs[0].name,
                                    indices ? "has classes, not scores" : "comes from " + maker));
  }
  const bool probabilities = said ? *said == ScoreKind::kProbabilities : finished || indices;
  manifest.scores = probabilities ? ScoreKind::kProbabilities : ScoreKind::kLogits;
  state.note(str_format("scores: {} ({})", probabilities ? "probabilities" : "logits",
                        said       ? said.source
                        : indices  ? "the outputs are classes already"
                        : finished ? str_format("the graph ends in {}", maker)
                                   : str_format("the graph ends in {}, not in Softmax or Sigmoid",
                                                maker.empty() ? "no known operation" : maker)));
  return {};
}

/// What the family's authors take, else what is usual.
float usual_threshold(const Manifest& manifest) {
  if (manifest.family == "db-text") return 0.6f;
  if (manifest.family == "blazeface") return 0.5f;
  if (finds_boxes(manifest.task)) return 0.25f;
  return manifest.task == "semantic-segmentation" ? 0.5f : 0.0f;
}

void take_thresholds(PlanState& state) {
  Manifest& manifest = state.manifest();
  const bool boxes = finds_boxes(manifest.task);
  const auto& [score, overlap] = std::tie(state.said.threshold, state.said.iou_threshold);
  manifest.threshold = score ? *score : usual_threshold(manifest);
  manifest.iou_threshold = overlap ? *overlap : manifest.family == "blazeface" ? 0.3f : 0.45f;
  if (!boxes && !has_scores(manifest.task)) return;
  state.note(str_format("threshold: score {:.6g} ({}){}", manifest.threshold,
                        score ? score.source : "usual",
                        boxes ? str_format(", IoU {:.6g} ({})", manifest.iou_threshold,
                                           overlap ? overlap.source : "usual")
                              : ""));
}

}  // namespace

Result<void> plan_family(PlanState& state) {
  const auto wanted = wanted_of(state);
  if (!wanted) return std::unexpected(wanted.error());
  const Statements& said = state.said;
  Manifest& manifest = state.manifest();
  const GuessInput input{.width = manifest.preprocess.width,
                         .height = manifest.preprocess.height,
                         .labels = said.labels ? said.labels->size() : 0,
                         .outputs = manifest.outputs,
                         .made_by = state.made_by,
                         .layouts = state.layouts,
                         .layouts_from = state.layouts_from,
                         .task = wanted->task,
                         .keypoints = said.keypoint_count ? *said.keypoint_count : 0,
                         .keypoint_values = said.keypoint_values ? *said.keypoint_values : 0,
                         .end_to_end = said.end_to_end.value};
  auto guess =
      wanted->family.empty() ? guess_family(input) : said_family(state, input, wanted->family);
  if (!guess) return std::unexpected(std::move(guess).error());
  state.guess = *std::move(guess);
  manifest.family = state.guess.family;
  manifest.task = task_of_family(manifest.family);
  if (state.guess.map_layout != TensorLayout::kAny) {
    manifest.outputs[0].layout = state.guess.map_layout;
  }
  PENSTOCK_TRY(check_end_to_end(state));
  state.note(str_format("task: {}{}", manifest.task,
                        wanted->task.empty() ? "" : str_format(" ({})", said.task.source)));
  state.note(str_format("family: {} ({})", manifest.family, state.guess.reason));
  return refuse_flags(state);
}

Result<void> plan_labels(PlanState& state) {
  Manifest& manifest = state.manifest();
  if (manifest.task == "embedding" || manifest.task == "raw") return {};
  const Stated<std::vector<std::string>>& said = state.said.labels;
  const std::size_t classes = state.guess.classes;
  if (said) {
    if (classes > 0 && said->size() != classes) {
      return contradiction(str_format(
          "{} labels for {} classes: the labels are from {}, the classes from the outputs{}",
          said->size(), classes, said.source,
          manifest.family == "yolov8" && classes == said->size() + 1
              ? "; a model of turned boxes needs --task oriented-detection"
              : ""));
    }
    manifest.labels = *said;
    state.note(str_format("labels: {} ({})", said->size(), said.source));
    return {};
  }
  if (manifest.task == "text-recognition") {
    ask_later(state,
              "the file names no characters; give --labels FILE, one a line, the first for "
              "the blank");
    return {};
  }
  if (classes == 0 && manifest.task != "pose") {
    ask_later(state, "the file names no labels; give --labels FILE, one name a line");
    return {};
  }
  const std::size_t count = std::max<std::size_t>(classes, 1);
  if (count > kMaxManifestLabels) return ask(str_format("{} classes are too many", count));
  if (manifest.task == "semantic-segmentation" && count == 2) {
    manifest.labels = {"background", "foreground"};
  } else {
    for (std::size_t i = 0; i < count; ++i) manifest.labels.push_back(usual_label(state, i));
  }
  const std::string last =
      count > 1 ? str_format(" to '{}'", manifest.labels.back()) : std::string();
  state.note(str_format("labels: none in the file, so '{}'{}; give --labels FILE",
                        manifest.labels.front(), last));
  return {};
}

Result<void> plan_task(PlanState& state) {
  Manifest& manifest = state.manifest();
  PENSTOCK_TRY(take_keypoints(state));
  PENSTOCK_TRY(take_scores(state));
  take_thresholds(state);
  manifest.class_agnostic = state.options.class_agnostic;
  manifest.normalise = state.options.normalise;
  if (state.options.top_k) manifest.top_k = *state.options.top_k;
  return {};
}

}  // namespace penstock
