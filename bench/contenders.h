// SPDX-License-Identifier: Apache-2.0
//
// The contenders of bench pipeline. Each runs alone in a process of its own: ONNX Runtime exists in
// two versions here (ours, and the one GStreamer's onnxinference is linked to), and one process
// must not mix them.
#pragma once

#include <gst/gst.h>

#include <filesystem>
#include <string>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/base/error.h"

namespace penstock::bench {

enum class Contender {
  kOurs,               ///< peninfer, a worker on every core.
  kOursOneWorker,      ///< peninfer, one worker.
  kLimit,              ///< Raw ONNX Runtime beside a decoder nobody looks at.
  kOnnxInference,      ///< videoconvertscale ! onnxinference.
  kOnnxInferenceQueue  ///< The same with a queue between the two, so that it uses a second core.
};

struct Task {
  std::filesystem::path clip;
  int frames = 0;  ///< The first frames of the clip.
  std::filesystem::path manifest;
  std::filesystem::path library;  ///< ONNX Runtime; empty: the build's default.
  std::filesystem::path scratch;  ///< Folder for files a contender needs.
};

/// From the first decoded frame to the end of the work on the last.
struct Effort {
  int frames = 0;
  Nanoseconds wall{};
  Nanoseconds cpu{};  ///< Of all threads of the process.
  double cpu_ms_per_frame() const { return double(cpu.count()) / 1e6 / frames; }
  double frames_per_second() const { return frames / (double(wall.count()) / 1e9); }
};

/// Of all threads of this process so far.
Nanoseconds cpu_time();

/// Time from its making on.
struct Watch {
  TimePoint wall = Clock::system().now();
  Nanoseconds cpu = cpu_time();
  Effort stop(int frames) const {
    return {.frames = frames, .wall = Clock::system().now() - wall, .cpu = cpu_time() - cpu};
  }
};

/// The decoder of `penstock run` on the first frames of the task's clip, as one bin with a "src"
/// pad. Null, and said on stderr: none.
GstElement* make_clip_decoder(const Task& task);

/// What this program prints to stdout when it is run again with `words`.
Result<std::string> run_self(std::vector<std::string> words);

/// An ONNX Runtime as it is loaded.
struct EngineLibrary {
  std::filesystem::path path;
  std::string version;  ///< "1.23.2"
};

/// Asks in a new process, as its library must not be loaded beside another. Empty: the one that
/// onnxinference is linked to.
Result<EngineLibrary> engine_apart(const std::filesystem::path& library);

/// Runs the contender in this process. An error when it did fewer frames than the task has.
Result<Effort> perform(Contender contender, const Task& task);

/// Runs it in a new process: this program again, with `--perform`.
Result<Effort> perform_apart(Contender contender, const Task& task);

/// The build's default when `library` is empty.
std::filesystem::path library_or_default(const std::filesystem::path& library);

/// What the program does when it finds `--perform` or `--engine` on its command line.
int perform_from_arguments(int argc, char** argv);
int engine_from_arguments(int argc, char** argv);

}  // namespace penstock::bench
