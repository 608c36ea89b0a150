// SPDX-License-Identifier: Apache-2.0
//
// What several inferences said of one frame, each of it at a size of its own, as one result
// (contract G03).
//
//   FrameResult whole = first;
//   const auto part = join_results(whole, second);
//   if (!part) return std::unexpected(part.error().context("pad 'sink_1'"));
#pragma once

#include <cstddef>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/records/records.h"

namespace penstock {

/// What of a joined result has no place in the whole one.
struct JoinedPart {
  std::size_t first_object = 0;  ///< Its objects' places in the whole one begin here.
  /// One for each of its objects without a parent, or -1: Detection::mask, which is -1 in the whole
  /// one, where it would count in somebody else's masks.
  std::vector<int> masks{};
  PictureFindings rest{};  ///< Of each kind that the whole one had from an earlier part.
};

/// kUnsupported, naming the field and both values, if they are of another source, generation
/// or PTS; or if `from` has no size.
Result<void> check_same_frame(const FrameResult& into, const FrameResult& from);

/// Appends the objects of `from`, in pixels of `into`, parents adapted; they keep their order,
/// behind those that are there. Of each kind of finding about the whole picture the first stays:
/// two classifiers' classes in one list would be nobody's. Errors are those of check_same_frame()
/// and kCorrupt for a parent that is none of the objects; they leave `into` as it was.
Result<JoinedPart> join_results(FrameResult& into, FrameResult from);

}  // namespace penstock
