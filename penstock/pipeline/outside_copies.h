// SPDX-License-Identifier: Apache-2.0
//
// Copies of frames outside the analytic path, which starts at peninfer's sink pad: what the decoder
// copied before it, and what outputs for people copied beside it.
#pragma once

#include <cstdint>
#include <string>

namespace penstock {

struct OutsideCopies {
  bool upstream_known = false;  ///< False: the decoders' copies can't be counted.
  std::string decoder;  ///< Its element, e.g. "avdec_h264"; "all decoders" of several sources.
  std::uint64_t upstream = 0;  ///< Frames the decoders copied.
  std::uint64_t drawn = 0;     ///< BGRA copies that video outputs were drawn on.
  std::uint64_t pictures = 0;  ///< Frames copied for the report's pictures.
};

/// For the closing table, with a final newline; `frames` is how many were analysed.
std::string to_table(const OutsideCopies& outside, std::uint64_t frames);
/// For the report's page.
std::string outside_section(const OutsideCopies& outside, std::uint64_t frames);

}  // namespace penstock
