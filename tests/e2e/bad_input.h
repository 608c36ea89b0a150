// SPDX-License-Identifier: Apache-2.0
//
// A run that is given something bad, and the one message that it must answer with. Tests only.
#pragma once

#include <gst/gst.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/e2e/clips.h"
#include "tests/e2e/penstock_process.h"

namespace penstock::e2e {

namespace fs = std::filesystem;

inline void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// One message: the last line, and no other line by penstock.
inline void expect_one_message(const Ended& ended, const std::string& part) {
  std::vector<std::string> messages;
  std::istringstream lines(ended.err);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("penstock: ", 0) == 0) messages.push_back(line);
  }
  ASSERT_EQ(messages.size(), 1u) << ended.err;
  EXPECT_NE(messages[0].find(part), std::string::npos) << ended.err;
}

class BadInput : public testing::Test {
 protected:
  void SetUp() override {
    gst_init(nullptr, nullptr);
    folder_ = fresh_folder();
    model_ = square_model(folder_).string();
    json_ = (folder_ / "out.jsonl").string();
  }

  Ended run(const std::string& source, std::vector<std::string> more = {},
            const Surroundings& surroundings = {}) {
    std::vector<std::string> arguments{"run",  "--source", source,         "--model",
                                       model_, "--out",    "json=" + json_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_penstock(arguments, surroundings);
  }
  Ended run_clip(const std::string& name, const std::string& description, int side = kSide) {
    make_square_clip(folder_ / name, 10, description, side);
    return run((folder_ / name).string());
  }

  fs::path folder_;
  std::string model_;
  std::string json_;
};

}  // namespace penstock::e2e
