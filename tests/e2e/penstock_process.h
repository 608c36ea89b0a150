// SPDX-License-Identifier: Apache-2.0
//
// Runs the `penstock` program as a user does, with a limit on how long it may take.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace penstock::e2e {

struct Ended {
  int code = -1;  ///< Exit code; 128 + signal when a signal killed it; -1: it hung and was killed.
  std::string out;
  std::string err;
};

/// What the program finds around it.
struct Surroundings {
  std::vector<std::string> environment = {};  ///< "NAME=value", beside the test's own.
  std::size_t file_size_limit = 0;            ///< No file can grow beyond these bytes; 0: no limit.
  int open_files_limit = 0;                   ///< Descriptors that it may have; 0: no limit.
  std::filesystem::path out_file = {};        ///< Where stdout goes, created; else Ended.out.
  bool hangup_ignored = false;                ///< As `nohup` starts it.
  /// The modes of files bind the program also where the test runs as root, who may read everything.
  bool bound_by_modes = false;
  /// Where its stdout goes instead, e.g. "/dev/full"; "-": it is closed.
  std::string output = {};
};

/// False where a process can't be bound by the modes of files.
bool can_bind_by_modes();

class PenstockProcess {
 public:
  explicit PenstockProcess(const std::vector<std::string>& arguments,
                           const Surroundings& surroundings = {});
  /// Kills what still runs.
  ~PenstockProcess();
  PenstockProcess(const PenstockProcess&) = delete;
  PenstockProcess& operator=(const PenstockProcess&) = delete;

  void signal(int number);
  /// Blocks until stderr has shown `text` as many times; false when the program ended or a minute
  /// passed first.
  bool await_error_output(const std::string& text, int times = 1);
  /// Blocks until it has ended, at most two minutes.
  Ended wait();

 private:
  /// Reads what is there; false at the end of both streams or at the deadline.
  bool pump(int timeout_ms);

  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  Ended ended_;
};

Ended run_penstock(const std::vector<std::string>& arguments,
                   const Surroundings& surroundings = {});

/// The parsed lines of a JSON lines file.
struct JsonBox {
  std::string label;
  int class_id = 0;
  double confidence = 0, x = 0, y = 0, w = 0, h = 0;
  long long track_id = 0;  ///< 0: none.
  bool predicted = false;
};
struct JsonLine {
  std::string source;
  long long frame = -1;
  long long pts_ns = -2;
  int width = 0, height = 0;
  std::vector<JsonBox> objects;
};
/// Fails the test on a line that is not of docs/json.md's shape.
std::vector<JsonLine> read_json_lines(const std::filesystem::path& path);

/// A fresh folder of this test.
std::filesystem::path fresh_folder();
/// manifest.json of the square finder for the clips of clips.h, in `folder`.
std::filesystem::path square_model(const std::filesystem::path& folder);
std::string read_text(const std::filesystem::path& path);

}  // namespace penstock::e2e
