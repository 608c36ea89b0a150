// SPDX-License-Identifier: Apache-2.0
//
// Records: what inference says about a frame, as small host data. Positions are in source pixels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace penstock {

/// May lie outside the picture: a model places hidden joints, too.
struct Keypoint {
  float x = 0, y = 0;
  float confidence = 0;  ///< 0..1; 1 from models that give none.
};

/// A box turned about its centre.
struct RotatedBox {
  float center_x = 0, center_y = 0, width = 0, height = 0;
  float angle = 0;  ///< Radians, clockwise as seen, of the side `width` from the x axis.
};

struct Classification {
  int class_id = 0;
  std::string label{};   ///< As Detection's.
  float confidence = 0;  ///< 0..1.
};

/// How much of the picture a class of a semantic segmentation takes.
struct ClassArea {
  int class_id = 0;
  std::string label{};
  float fraction = 0;  ///< 0..1 of the analysed picture, padding not counted.
};

/// A line of text that was read from the whole picture.
struct TextLine {
  std::string text{};    ///< UTF-8, characters in the order of reading.
  float confidence = 0;  ///< 0..1, the mean of its characters'.
};

/// An output tensor that the user asked to have read back.
struct TensorRecord {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<double> values;  ///< Row-major; exact for every type, but 64-bit integers to 2^53.
};

/// What one inference says of a picture, or of a part of one, as a whole.
struct PictureFindings {
  std::vector<Classification> classes;  ///< Score descending.
  std::vector<ClassArea> areas;         ///< Largest first; classes without a pixel are left out.
  std::vector<float> embedding;
  std::vector<TensorRecord> tensors;
  std::vector<TextLine> texts;  ///< Empty when nothing was read.
};

/// What the model of a second stage says of one object.
struct Attributes : PictureFindings {
  std::string model;      ///< Its name.
  std::uint64_t age = 0;  ///< Frames of the stream since the object was looked at.
};

struct Detection {
  int class_id = 0;
  std::string label{};   ///< From the model's labels; "class N" when it has none.
  float confidence = 0;  ///< 0..1.
  float x = 0, y = 0, width = 0, height = 0;
  /// In the order of the model's keypoints; empty when its task is not pose.
  std::vector<Keypoint> keypoints{};
  /// Of oriented detections; x, y, width and height then are its upright hull.
  std::optional<RotatedBox> rotated{};
  /// Which mask of DeviceFindings::masks is this object's, -1 when it has none. With a parent, of
  /// those that the second stage left on the device about the parent.
  int mask = -1;
  /// From a tracker, 1..2^63-1; 0: none. Equal in all frames of the stream for one object.
  std::int64_t track_id = 0;
  bool predicted = false;                ///< No detection: where a tracker supposes the object.
  std::vector<Attributes> attributes{};  ///< From second stages, in their order.
  /// From a second stage: which of the frame's objects it was found in, -1: found by itself.
  int parent = -1;
};

/// What one inference says, in the fields of its model's task; the others are empty.
struct Findings : PictureFindings {
  std::vector<Detection> objects;  ///< Score descending, then what was found within objects.
};

/// What a zone counter said of one of its zones with a frame.
struct ZoneCount {
  std::string name{};
  std::uint64_t inside = 0;   ///< Objects of this frame.
  std::uint64_t entered = 0;  ///< Since its start.
  std::uint64_t left = 0;
};

/// As ZoneCount, of a line.
struct LineCount {
  std::string name{};
  std::uint64_t forwards = 0;  ///< Since its start.
  std::uint64_t backwards = 0;
};

struct FrameResult : Findings {
  std::string source;
  std::uint64_t frame = 0;  ///< 0-based number within the source.
  std::int64_t pts_ns = -1;
  std::uint64_t generation = 0;
  int width = 0, height = 0;
  std::vector<Attributes> attributes{};  ///< Of the whole frame, by later models, in their order.
  std::vector<ZoneCount> zones{};        ///< In the counter's order; empty where nobody counted.
  std::vector<LineCount> lines{};
};

/// One JSON line without the newline (docs/json.md): source, frame, pts_ns, width, height,
/// objects[], and where there is something to tell the keys of the other tasks, attributes[],
/// zones[] and lines[]. Numbers are plain decimal, non-finite values never occur, strings are
/// escaped UTF-8.
std::string to_json_line(const FrameResult& result);

}  // namespace penstock
