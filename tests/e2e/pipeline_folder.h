// SPDX-License-Identifier: Apache-2.0
//
// For tests of pipelines: a fresh folder with the square finder and a YAML file.
#pragma once

#include <gst/gst.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/e2e/clips.h"
#include "tests/e2e/penstock_process.h"

namespace penstock::e2e {

class PipelineFolder : public testing::Test {
 protected:
  void SetUp() override {
    gst_init(nullptr, nullptr);
    folder_ = fresh_folder();
    model_ = square_model(folder_).string();
    json_ = (folder_ / "all.jsonl").string();
    yaml_ = (folder_ / "p.yaml").string();
  }
  /// The model, JSON for all and no lines of statistics, and then `rest`.
  void write_pipeline(const std::string& rest, const std::string& outputs = {}) const {
    std::ofstream(yaml_) << "model: " << model_
                         << "\nstats-interval: 0s\noutputs:\n  json: " << json_ << "\n"
                         << outputs << rest;
  }
  /// The JSON lines by source; frame numbers must count up from 0 and times grow in each.
  std::map<std::string, std::vector<JsonLine>> lines_by_source() const {
    std::map<std::string, std::vector<JsonLine>> lines;
    for (JsonLine& line : read_json_lines(json_)) {
      auto& of_source = lines[line.source];
      EXPECT_EQ(line.frame, (long long)of_source.size()) << line.source;
      if (!of_source.empty()) {
        EXPECT_GT(line.pts_ns, of_source.back().pts_ns) << line.source;
      }
      of_source.push_back(std::move(line));
    }
    return lines;
  }

  std::filesystem::path folder_;
  std::string model_, json_, yaml_;
};

}  // namespace penstock::e2e
