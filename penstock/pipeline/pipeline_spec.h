// SPDX-License-Identifier: Apache-2.0
//
// PipelineSpec is what a pipeline is to be: the content of a YAML file (docs/pipelines.md) or of
// several `--source` flags, checked as far as text alone can be.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/pipeline/config_node.h"

namespace penstock {

inline constexpr std::size_t kMaxPipelineSources = 128;
inline constexpr std::size_t kMaxPipelineStages = 8;

/// A property of an element, as text; the element says whether it takes it.
struct Setting {
  std::string name;
  std::string value;
  TextPlace place;
};

enum class PipelineSourceKind { kFile, kRtsp, kDevice, kTest };

/// Generated video.
struct TestPattern {
  std::string pattern = "ball";
  int width = 640;           ///< Even.
  int height = 480;          ///< Even.
  int rate = 25;             ///< Frames a second.
  std::uint64_t frames = 0;  ///< Then it ends; 0: never.
  bool live = true;          ///< Paced by the clock, as a camera is.
};

struct PipelineSource {
  std::string name;  ///< A valid_source_name().
  PipelineSourceKind kind = PipelineSourceKind::kFile;
  std::string address;     ///< A path or an address, which may hold a password; "" for kTest.
  TestPattern test;        ///< kTest.
  bool loop = false;       ///< kFile: begin again at its end.
  bool reconnect = false;  ///< kRtsp and kDevice: dial again for ever.
  std::string zones;       ///< penzone's property; empty: none.
  std::string lines;
  TextPlace place;
};

/// What of a frame a stage's model looks at.
enum class StageRoi { kFullFrame, kObjects, kTiles };

/// As the file says it: "objects".
std::string_view name_of(StageRoi roi);

/// A further model, behind the first.
struct StageSpec {
  std::string model;  ///< A name or a path.
  TextPlace model_place;
  StageRoi roi = StageRoi::kObjects;
  TextPlace roi_place;            ///< The stage's own where nothing says it.
  std::vector<Setting> settings;  ///< More properties of its peninfer.
  TextPlace place;

  /// Null where it is not told.
  const Setting* setting(std::string_view name) const;
};

struct PipelineSpec {
  std::string model;  ///< A name or a path.
  TextPlace model_place;
  std::string device = "cpu";
  TextPlace device_place;
  std::vector<Setting> infer;  ///< More properties of peninfer.
  std::optional<float> threshold;
  std::vector<StageSpec> stages;  ///< In the order in which frames pass them.
  bool track = false;
  std::vector<Setting> tracker;  ///< Properties of pentrack.
  TextPlace track_place;
  bool convert = false;

  std::filesystem::path file;    ///< The text's own; empty: there is none.
  std::filesystem::path json;    ///< One file for all sources; empty: none.
  std::filesystem::path events;  ///< What penzone tells; empty: none.
  std::filesystem::path report;  ///< HTML, or JSON if it ends in .json; empty: none.
  TextPlace json_place;
  TextPlace events_place;
  TextPlace report_place;
  std::string video;  ///< With kSourceMark where the source's name goes; empty: none.
  TextPlace video_place;

  std::filesystem::path control;  ///< A socket; empty: none.
  TextPlace control_place;
  bool stay_open = false;  ///< Go on without sources: others may be added.
  Nanoseconds stall_after = std::chrono::seconds(10);
  Nanoseconds stats_interval = std::chrono::seconds(10);  ///< Zero: never.

  std::vector<PipelineSource> sources;
};

/// Stands for the source's name in PipelineSpec::video.
inline constexpr std::string_view kSourceMark = "{source}";

/// What an output's text stands for: "-" is stdout.
std::string output_of(std::string_view text);

/// 1 to 64 of A-Z a-z 0-9 _ -: a name that is safe in a path, a table and a terminal.
bool valid_source_name(std::string_view name);

/// "rtsp://user:***@host/stream": what anybody may see of a source.
std::string shown_address(const PipelineSource& source);

}  // namespace penstock
