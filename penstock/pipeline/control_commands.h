// SPDX-License-Identifier: Apache-2.0
//
// The commands of the control socket (docs/pipelines.md): a line of JSON comes in, one goes out.
//
//   {"command":"add","source":{"name":"yard","uri":"rtsp://camera/2"}}   -> {"ok":true}
//   {"command":"remove","name":"yard"}                                  -> {"ok":true}
//   {"command":"list"} {"command":"stats"}               -> {"ok":true,"sources":[...]}
//   anything else                                        -> {"ok":false,"error":"..."}
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/pipeline/pipeline_spec.h"
#include "penstock/pipeline/source_status.h"

namespace penstock {

/// What is controlled: a PipelineJob, or what a test has in its place. Called on the server's
/// thread.
class ControlTarget {
 public:
  virtual ~ControlTarget() = default;
  virtual Result<void> add(const PipelineSource& source) = 0;
  virtual Result<void> remove(const std::string& name) = 0;
  virtual std::vector<SourceStatus> statuses() const = 0;
};

/// The answer to one line, without its end. The line is a stranger's: nothing of it is taken for
/// true, and no answer is larger than what `target` tells.
std::string answer_control(std::string_view line, ControlTarget& target);

}  // namespace penstock
