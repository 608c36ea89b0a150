// SPDX-License-Identifier: Apache-2.0
//
// A benchmark's result: a table for people and a JSON file for comparison.
//
//   BenchReport report("pipeline");
//   report.add({.name = "vtest.avi, wall", .unit = "frames/s", .higher_is_better = true,
//               .ours = 73.9, .peer_name = "limit", .peer = 75.3, .ratio = 0.98, .bar = 0.94});
//   return report.finish("build/bench/pipeline.json") ? 0 : 1;
//
// A ratio above 1 always means that ours is better.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace penstock::bench {

struct BenchRow {
  std::string name;
  std::string unit;
  bool higher_is_better = true;
  double ours = 0;
  std::string peer_name;
  double peer = 0;
  double ratio = 0;
  double bar = 0;  ///< Least acceptable ratio; 0: none.
  bool ok() const { return ratio >= bar; }
};

class BenchReport {
 public:
  explicit BenchReport(std::string name) : name_(std::move(name)) {}
  void add(BenchRow row) { rows_.push_back(std::move(row)); }
  /// Prints the table and writes the file. False when a bar is missed or the file can't be written.
  bool finish(const std::filesystem::path& json) const;
  std::string to_json() const;
  std::string to_table() const;

 private:
  std::string name_;
  std::vector<BenchRow> rows_;
};

/// The middle value; the mean of the two middle ones for an even count. 0 when empty.
double median(std::vector<double> values);

}  // namespace penstock::bench
