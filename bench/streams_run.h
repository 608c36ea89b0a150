// SPDX-License-Identifier: Apache-2.0
//
// The contenders of bench streams: many streams of one clip that share one model. Each runs alone
// in a process of its own, as those of bench pipeline.
#pragma once

#include "bench/contenders.h"
#include "penstock/base/clock.h"
#include "penstock/base/error.h"

namespace penstock::bench {

enum class StreamsContender {
  kOurs,   ///< A peninfer a stream, all of one model-instance.
  kLimit,  ///< Raw ONNX Runtime beside as many decoders that nobody looks at.
};

struct StreamsTask {
  Task clip;  ///< Its frames are each stream's.
  int streams = 1;
  double rate = 0;  ///< Frames/s of all streams together; 0: as fast as they go.
};

struct StreamsEffort {
  Effort effort;  ///< Frames of all streams.
  long peak_rss_kib = 0;
  Nanoseconds latency_p95{};  ///< From coming to peninfer to leaving it; without first frames.
  Nanoseconds run_p50{};      ///< Of the engine.
  Nanoseconds ideal_p95{};    ///< See ideal_queue_p95(), of the same frames.
  double others_cores = 0;    ///< That everybody else on the machine kept busy meanwhile.
};

Result<StreamsEffort> perform_streams(StreamsContender contender, const StreamsTask& task);

/// Runs it in a new process: this program again, with `--perform-streams`.
Result<StreamsEffort> perform_streams_apart(StreamsContender contender, const StreamsTask& task);

/// What the program does when it finds `--perform-streams` on its command line.
int perform_streams_from_arguments(int argc, char** argv);

}  // namespace penstock::bench
