// SPDX-License-Identifier: Apache-2.0
//
// The pictures of report.html, with what was found drawn over them.
#pragma once

#include <string>

#include "penstock/pipeline/run_summary.h"

namespace penstock {

/// A figure with its caption, in itself: the picture is within.
std::string picture_figure(const ReportPicture& picture, Subject subject);

}  // namespace penstock
