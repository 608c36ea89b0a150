// SPDX-License-Identifier: Apache-2.0
//
// bench decode: from a model's outputs to its objects, each family at its real size, beside what
// people write with OpenCV (cv::dnn::NMSBoxes) and with NumPy. Contenders in turn with the order
// rotated; a row's ratio is the median of the rounds' ratios. Before the clock starts they must
// find the same number of objects.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <opencv2/dnn.hpp>
#include <string>
#include <vector>

#include "bench/decode_outputs.h"
#include "bench/report.h"
#include "penstock/base/clock.h"
#include "penstock/base/str_format.h"
#include "penstock/base/unique_fd.h"
#include "penstock/media/test_frames.h"
#include "penstock/task/output_decoder.h"

extern char** environ;

namespace penstock::bench {
namespace {

namespace fs = std::filesystem;

constexpr float kThreshold = 0.4f;
constexpr float kIou = 0.5f;

struct Flags {
  std::string json = "build/bench/decode.json";
  std::string family;  ///< Empty: all.
  int rounds = 25;
  int frames = 5;  ///< At least.
};

struct Outcome {
  double ms = 0;  ///< A frame.
  std::size_t objects = 0;
};

Outcome timed(int frames, const std::function<std::size_t()>& decode) {
  Outcome outcome;
  const TimePoint begun = Clock::system().now();
  for (int i = 0; i < frames; ++i) outcome.objects = decode();
  outcome.ms = double((Clock::system().now() - begun).count()) / 1e6 / frames;
  return outcome;
}

/// The loop that examples show: best class of each row by minMaxLoc, then NMSBoxes over all.
std::size_t decode_with_opencv(const ModelOutputs& outputs) {
  const Shape& shape = outputs.shapes[0];
  const bool columns = outputs.family == "yolov8";
  const bool has_objectness = outputs.family == "yolov5";
  cv::Mat rows(int(shape[1]), int(shape[2]), CV_32FC1,
               const_cast<float*>(outputs.values[0].data()));
  if (columns) rows = rows.t();
  const int first = has_objectness ? 5 : 4;
  std::vector<cv::Rect2d> boxes;
  std::vector<float> scores;
  std::vector<int> classes;
  for (int i = 0; i < rows.rows; ++i) {
    const auto* row = rows.ptr<float>(i);
    if (has_objectness && row[4] < kThreshold) continue;
    const cv::Mat class_scores(1, rows.cols - first, CV_32FC1, const_cast<float*>(row) + first);
    cv::Point best;
    double score = 0;
    cv::minMaxLoc(class_scores, nullptr, &score, nullptr, &best);
    if (has_objectness) score *= double(row[4]);
    if (score < double(kThreshold)) continue;
    boxes.emplace_back(row[0] - row[2] / 2, row[1] - row[3] / 2, row[2], row[3]);
    scores.push_back(float(score));
    classes.push_back(best.x);
  }
  std::vector<int> kept;
  cv::dnn::NMSBoxesBatched(boxes, scores, classes, kThreshold, kIou, kept);
  return kept.size();
}

/// decode_peers.py as a child that decodes when it is told to.
class NumpyPeer {
 public:
  NumpyPeer(const ModelOutputs& outputs, const fs::path& script, const fs::path& scratch) {
    std::vector<std::string> arguments{"python3",
                                       script.string(),
                                       outputs.family,
                                       std::to_string(outputs.input),
                                       str_format("{}", kThreshold),
                                       str_format("{}", kIou)};
    for (std::size_t i = 0; i < outputs.shapes.size(); ++i) {
      const fs::path file = scratch / str_format("decode-{}-{}.bin", outputs.family, i);
      std::ofstream(file, std::ios::binary)
          .write(reinterpret_cast<const char*>(outputs.values[i].data()),
                 std::streamsize(outputs.values[i].size() * sizeof(float)));
      std::string sides;
      for (const std::int64_t side : outputs.shapes[i]) {
        sides += str_format("{}{}", sides.empty() ? "" : "x", side);
      }
      arguments.insert(arguments.end(), {file.string(), sides});
    }
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    int in[2], out[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    if (::posix_spawnp(&child_, "python3", &actions, nullptr, argv.data(), environ) != 0)
      child_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    to_ = UniqueFd(in[1]);
    from_ = ::fdopen(out[0], "r");
  }
  NumpyPeer(const NumpyPeer&) = delete;
  NumpyPeer& operator=(const NumpyPeer&) = delete;
  ~NumpyPeer() {
    to_ = UniqueFd();  // It ends with its input.
    if (child_ > 0) ::waitpid(child_, nullptr, 0);
    if (from_ != nullptr) std::fclose(from_);
  }

  Result<Outcome> decode(int frames) {
    const std::string ask = str_format("{}\n", frames);
    if (::write(to_.get(), ask.data(), ask.size()) != ssize_t(ask.size())) return gone();
    Outcome outcome;
    if (std::fscanf(from_, "%lf %zu", &outcome.ms, &outcome.objects) != 2) return gone();
    return outcome;
  }

 private:
  static std::unexpected<Error> gone() {
    return fail(ErrorKind::kDevice, "the NumPy peer ended; is python3 with numpy there?");
  }

  pid_t child_ = -1;
  UniqueFd to_;
  FILE* from_ = nullptr;
};

struct Contender {
  std::string name;
  std::function<Result<Outcome>(int frames)> decode;
  std::vector<double> ms{}, ratio{};
};

/// contenders[0] is ours.
Result<void> measure(std::vector<Contender>& contenders, const Flags& flags) {
  std::size_t objects = 0;
  int frames = flags.frames;
  for (const Contender& contender : contenders) {
    const auto warm = contender.decode(2);
    if (!warm) return std::unexpected(warm.error());
    if (&contender == contenders.data()) objects = warm->objects;
    // A measurement takes at least a few milliseconds, so that what comes with each is small.
    if (&contender == contenders.data()) frames = std::max(frames, int(2.0 / warm->ms));
    if (warm->objects != objects || objects == 0) {
      return fail(ErrorKind::kInternal, str_format("{} finds {} objects, ours {}", contender.name,
                                                   warm->objects, objects));
    }
  }
  for (int round = 0; round < flags.rounds; ++round) {
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      Contender& next = contenders[(i + std::size_t(round)) % contenders.size()];
      const auto outcome = next.decode(frames);
      if (!outcome) return std::unexpected(outcome.error());
      next.ms.push_back(outcome->ms);
    }
    for (Contender& contender : contenders) {
      contender.ratio.push_back(contender.ms.back() / contenders.front().ms.back());
    }
  }
  return {};
}

Result<void> run_family(const ModelOutputs& outputs, const Flags& flags, BenchReport& report) {
  const DevicePtr device = testing::make_device("cpu");
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < outputs.shapes.size(); ++i) {
    const auto bytes = std::as_bytes(std::span(outputs.values[i]));
    auto storage = device->allocate(bytes.size());
    if (!storage) return std::unexpected(storage.error());
    const StorageRegion region{*storage, 0, bytes.size()};
    PENSTOCK_TRY(device->upload(region, bytes, TransferPurpose::kTestContent));
    tensors.push_back({.name = str_format("output{}", i),
                       .type = DataType::kFloat32,
                       .shape = outputs.shapes[i],
                       .data = region,
                       .ready = {}});
  }
  auto decoder =
      create_decoder(outputs.manifest(), {.threshold = kThreshold, .iou_threshold = kIou});
  if (!decoder) return std::unexpected(decoder.error());
  NumpyPeer numpy(outputs, "bench/decode_peers.py", fs::absolute(flags.json).parent_path());
  std::vector<Contender> contenders{{"ours",
                                     [&](int frames) -> Result<Outcome> {
                                       return timed(frames, [&] {
                                         const auto decoded = (*decoder)->decode(*device, tensors);
                                         return decoded ? std::size_t{decoded->block.count}
                                                        : std::size_t{0};
                                       });
                                     }},
                                    {"numpy", [&](int frames) { return numpy.decode(frames); }}};
  if (outputs.family == "yolov8" || outputs.family == "yolov5") {
    contenders.push_back({"opencv-nmsboxes", [&](int frames) -> Result<Outcome> {
                            return timed(frames, [&] { return decode_with_opencv(outputs); });
                          }});
  }
  PENSTOCK_TRY(measure(contenders, flags));
  std::string sizes;
  for (const Shape& shape : outputs.shapes) sizes += " " + to_string(shape);
  for (const Contender& peer : std::span(contenders).subspan(1)) {
    report.add(
        {.name = outputs.family + sizes,
         .unit = "ms",
         .higher_is_better = false,
         .ours = median(contenders.front().ms),
         .peer_name = peer.name,
         .peer = median(peer.ms),
         .ratio = median(peer.ratio),
         // The bar is for NumPy. OpenCV's loop in C++ skips as ours does and is for comparison.
         .bar = peer.name == "numpy" ? 5.0 : 0.0});
  }
  return {};
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  using namespace penstock::bench;
  CLI::App app("Decoding outputs beside OpenCV and NumPy, from the repository's folder",
               "bench_decode");
  Flags flags;
  app.add_option("--json", flags.json, "Where the results go")->capture_default_str();
  app.add_option("--family", flags.family, "Only this family");
  app.add_option("--rounds", flags.rounds, "Rounds a family")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--frames", flags.frames, "Frames a measurement")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  cv::setNumThreads(1);
  BenchReport report("decode");
  for (const ModelOutputs& outputs : make_model_outputs()) {
    if (!flags.family.empty() && flags.family != outputs.family) continue;
    if (const auto done = run_family(outputs, flags, report); !done) {
      std::fprintf(stderr, "bench decode: %s: %s\n", outputs.family.c_str(),
                   done.error().message().c_str());
      return 1;
    }
  }
  return report.finish(flags.json) ? 0 : 1;
}
