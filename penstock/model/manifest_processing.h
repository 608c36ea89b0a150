// SPDX-License-Identifier: Apache-2.0
//
// The parts of a schema 2 manifest that say what happens before and after the model.
#pragma once

#include "penstock/model/json_object.h"
#include "penstock/model/manifest.h"

namespace penstock {

/// After 'inputs', which the result must fit. Problems go to root.errors().
void read_preprocess(JsonObject& root, Manifest& manifest);
/// After 'task', which says what may and must be there.
void read_postprocess(JsonObject& root, Manifest& manifest);

}  // namespace penstock
