// SPDX-License-Identifier: Apache-2.0
#include "penstock/records/join_results.h"

#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/records/frame_scale.h"

namespace penstock {
namespace {

template <typename T>
Result<void> expect_same(std::string_view field, const T& into, const T& from) {
  if (into == from) return {};
  return fail(ErrorKind::kUnsupported,
              str_format("{} '{}' is not the frame's, which is '{}'", field, from, into));
}

Result<void> check_parents(const std::vector<Detection>& objects) {
  for (const Detection& object : objects) {
    if (object.parent < 0 || static_cast<std::size_t>(object.parent) < objects.size()) continue;
    return fail(ErrorKind::kCorrupt, str_format("an object's parent is {}, of {} objects",
                                                object.parent, objects.size()));
  }
  return {};
}

template <typename T>
void take_or_leave(T& into, T& from, T& rest) {
  (into.empty() ? into : rest) = std::move(from);
}

template <typename T>
void append(std::vector<T>& into, std::vector<T>& from) {
  into.insert(into.end(), std::make_move_iterator(from.begin()),
              std::make_move_iterator(from.end()));
}

}  // namespace

Result<void> check_same_frame(const FrameResult& into, const FrameResult& from) {
  PENSTOCK_TRY(expect_same("source", into.source, from.source));
  PENSTOCK_TRY(expect_same("generation", into.generation, from.generation));
  PENSTOCK_TRY(expect_same("PTS (ns)", into.pts_ns, from.pts_ns));
  if (from.width >= 1 && from.height >= 1 && into.width >= 1 && into.height >= 1) return {};
  return fail(ErrorKind::kUnsupported,
              str_format("size {}x{} can't be told in pixels of {}x{}", from.width, from.height,
                         into.width, into.height));
}

Result<JoinedPart> join_results(FrameResult& into, FrameResult from) {
  PENSTOCK_TRY(check_same_frame(into, from));
  PENSTOCK_TRY(check_parents(from.objects));
  const FrameScale scale = scale_between(from.width, from.height, into.width, into.height);
  JoinedPart part{.first_object = into.objects.size()};
  for (Detection& object : from.objects) {
    rescale(object, scale);
    if (object.parent >= 0) {
      object.parent += static_cast<int>(part.first_object);
      part.masks.push_back(-1);
    } else {
      part.masks.push_back(std::exchange(object.mask, -1));
    }
    into.objects.push_back(std::move(object));
  }
  take_or_leave(into.classes, from.classes, part.rest.classes);
  take_or_leave(into.areas, from.areas, part.rest.areas);
  take_or_leave(into.embedding, from.embedding, part.rest.embedding);
  take_or_leave(into.tensors, from.tensors, part.rest.tensors);
  take_or_leave(into.texts, from.texts, part.rest.texts);
  // These have names of their own, and no places in pixels.
  append(into.attributes, from.attributes);
  append(into.zones, from.zones);
  append(into.lines, from.lines);
  return part;
}

}  // namespace penstock
