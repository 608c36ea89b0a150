// SPDX-License-Identifier: Apache-2.0
//
// For tests of `penstock model`: a fresh folder with a model that finds squares.
#pragma once

#include <gst/gst.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "penstock/model/testing/square_finders.h"
#include "tests/e2e/clips.h"
#include "tests/e2e/penstock_process.h"

namespace penstock::e2e {

class ModelFolder : public testing::Test {
 protected:
  void SetUp() override {
    gst_init(nullptr, nullptr);
    folder_ = fresh_folder();
    models_ = (folder_ / "models").string();
    onnx_ = (folder_ / "squares.onnx").string();
    labels_ = (folder_ / "labels.txt").string();
    std::ofstream(labels_) << "red\ngreen\nblue\n";
    write(model_testing::BoxLayout::kYolov8);
  }
  void write(model_testing::BoxLayout layout) const {
    std::ofstream(onnx_, std::ios::binary) << model_testing::make_square_finder(layout, kSide).onnx;
  }
  /// `penstock model WORDS...` with `models_` as the folder of prepared models.
  Ended model(std::vector<std::string> words, const Surroundings& surroundings = {}) const {
    words.insert(words.begin(), "model");
    words.insert(words.end(), {"--models", models_});
    return run_penstock(words, surroundings);
  }
  Ended prepare(const std::vector<std::string>& more = {},
                const Surroundings& surroundings = {}) const {
    std::vector<std::string> words{"prepare", onnx_, "--labels", labels_};
    words.insert(words.end(), more.begin(), more.end());
    return model(words, surroundings);
  }

  std::filesystem::path folder_;
  std::string models_, onnx_, labels_;
};

}  // namespace penstock::e2e
