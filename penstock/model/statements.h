// SPDX-License-Identifier: Apache-2.0
//
// Statements: what is said of a model by flags, files beside it and its metadata, each with who
// says so. Who is offered first is believed; preparation.h has the order.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "penstock/model/model_info.h"
#include "penstock/model/onnx_reader.h"
#include "penstock/model/preparation.h"

namespace penstock {

template <typename T>
struct Stated {
  std::optional<T> value{};
  std::string source{};  ///< "--labels", "yolo11n.onnx.modelinfo", "metadata 'names'".
  bool is_flag = false;

  explicit operator bool() const { return value.has_value(); }
  const T& operator*() const { return *value; }
  const T* operator->() const { return &*value; }
  void offer(std::optional<T> said, std::string who, bool flag = false) {
    if (value || !said) return;
    value = std::move(said);
    source = std::move(who);
    is_flag = flag;
  }
};

struct Statements {
  Stated<std::string> task, family;
  Stated<std::vector<std::string>> labels, keypoints;
  Stated<std::size_t> keypoint_count, keypoint_values;
  Stated<bool> end_to_end;
  Stated<int> width, height, stride;
  Stated<ChannelOrder> order;
  Stated<Fit> fit;
  Stated<float> scale, pad, threshold, iou_threshold;
  Stated<std::array<float, 3>> mean, std;
  Stated<ScoreKind> scores;
  Stated<std::string> licence;
  bool is_ultralytics = false;
  std::vector<std::string> notes{};  ///< What was said and can't be used.
};

/// kInvalidArgument: an option out of its range, named.
Result<Statements> gather_statements(const PrepareOptions& options,
                                     std::span<const ModelInfo> infos, const OnnxSummary& summary);

}  // namespace penstock
