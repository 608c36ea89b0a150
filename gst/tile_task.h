// SPDX-License-Identifier: Apache-2.0
//
// Frames that go through a detector tile by tile.
#pragma once

#include <memory>
#include <string>

#include "gst/frame_task.h"
#include "penstock/media/tiles.h"
#include "penstock/task/output_decoder.h"

namespace penstock::gst {

/// `merge` has what suppresses boxes across tiles, and how many objects a frame may have.
std::shared_ptr<FrameTasks> tile_tasks(const TileGrid& grid, const DecodeOptions& merge,
                                       const std::string& model);

}  // namespace penstock::gst
