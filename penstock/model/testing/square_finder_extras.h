// SPDX-License-Identifier: Apache-2.0
//
// Outputs of the square finders that say more than boxes. Tests only.
#pragma once

#include "penstock/model/testing/finder_graph.h"
#include "penstock/model/testing/square_finders.h"

namespace penstock::model_testing {

void add_mask_outputs(FinderGraph& finder, BoxLayout layout, int size);
void add_pose_output(FinderGraph& finder, BoxLayout layout, int size);
void add_turned_output(FinderGraph& finder, BoxLayout layout);
void add_movenet_output(FinderGraph& finder, BoxLayout layout, int size);

}  // namespace penstock::model_testing
