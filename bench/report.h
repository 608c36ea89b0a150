// SPDX-License-Identifier: Apache-2.0
//
// A benchmark's result: a table for people and a JSON file for comparison.
//
//   BenchReport report("pipeline");
//   report.set_run({.pairs = 15, .frames = 120, .engine = "1.29.0", .peer_engine = "1.23.2"});
//   report.add({.name = "vtest.avi, wall", .unit = "frames/s", .higher_is_better = true,
//               .ours = 73.9, .peer_name = "limit", .peer = 75.3, .ratio = 0.98, .bar = 0.94});
//   return report.finish("build/bench/pipeline.json") ? 0 : 1;
//
// A ratio above 1 always means that ours is better.
#pragma once

#include <filesystem>
#include <optional>
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

/// How the rows of a benchmark in pairs came about.
struct BenchRun {
  static constexpr int kLeastPairs = 15;
  static constexpr int kLeastFrames = 120;

  int pairs = 0;            ///< A comparison.
  int frames = 0;           ///< A measurement.
  std::string engine;       ///< Version of the inference library that ours ran on.
  std::string peer_engine;  ///< And the peer.
  /// Too short for its bars to say anything.
  bool is_trial() const { return pairs < kLeastPairs || frames < kLeastFrames; }
};

class BenchReport {
 public:
  explicit BenchReport(std::string name) : name_(std::move(name)) {}
  void add(BenchRow row) { rows_.push_back(std::move(row)); }
  void set_run(BenchRun run) { run_ = std::move(run); }
  /// Prints the table and writes the file. False when a bar is missed or the file can't be written;
  /// a trial misses no bar, and its rows have "ok": null.
  bool finish(const std::filesystem::path& json) const;
  std::string to_json() const;
  std::string to_table() const;

 private:
  bool is_trial() const { return run_ && run_->is_trial(); }

  std::string name_;
  std::vector<BenchRow> rows_;
  std::optional<BenchRun> run_;
};

/// The middle value; the mean of the two middle ones for an even count. 0 when empty.
double median(std::vector<double> values);

}  // namespace penstock::bench
