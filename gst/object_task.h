// SPDX-License-Identifier: Apache-2.0
//
// Second stages: the objects that a frame's metadata has go through the model, each as a region,
// and what it says of each is put beside them.
#pragma once

#include <memory>
#include <string>

#include "gst/frame_task.h"
#include "gst/object_choice.h"

namespace penstock::gst {

struct ObjectOptions {
  std::string model;     ///< Its name, which goes with what it says.
  bool is_pose = false;  ///< The surest object in a region gives the object's keypoints.
  ObjectFilter filter;   ///< Its max_objects also bounds what is found within a frame's objects.
};

/// A tracked object that is not looked at keeps the classes, texts, areas, vectors and tensors (of
/// up to kKeptValues values) that were last said of it, with their age in frames. What has a place
/// in the picture is told of the frame it was found in only.
std::shared_ptr<FrameTasks> object_tasks(const ObjectOptions& options,
                                         std::shared_ptr<RegionCounts> counts);

inline constexpr std::size_t kKeptValues = 4096;

}  // namespace penstock::gst
