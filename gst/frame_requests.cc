// SPDX-License-Identifier: Apache-2.0
#include "gst/frame_requests.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "penstock/base/str_format.h"

namespace penstock::gst {
namespace {

/// What a frame keeps alive: its buffer and maps, its place in the budget, its stream's display.
struct Kept {
  std::shared_ptr<BufferHold> hold;
  FrameBudget::Lease lease;
  std::shared_ptr<const void> identity;
};

FrameResult describe(const ArrivedFrame& frame, const InferSources::Ticket& ticket,
                     Generation generation) {
  FrameResult about;
  about.source = ticket.identity->stream_id;
  about.frame = ticket.number;
  const GstClockTime pts = GST_BUFFER_PTS(frame.buffer);
  about.pts_ns = GST_CLOCK_TIME_IS_VALID(pts) ? static_cast<std::int64_t>(pts) : -1;
  about.generation = generation;
  about.width = frame.format.width;
  about.height = frame.format.height;
  return about;
}

}  // namespace

Result<FrameRequests> begin_frame(const ArrivedFrame& frame, const InferSources::Ticket& ticket,
                                  Generation generation, const FrameBudget::Lease& lease,
                                  DeviceId device) {
  const auto where = [&](const Error& error) {
    const std::string whose =
        frame.place.contained ? str_format(" of stream '{}'", frame.key.stream_id) : "";
    return std::unexpected(error.context(str_format("reading frame {}{}", ticket.number, whose)));
  };
  auto task = ticket.tasks->begin(frame.buffer, describe(frame, ticket, generation));
  if (!task) return where(task.error());
  FrameRequests begun{.place = frame.place, .task = *std::move(task), .number = ticket.number};
  if (begun.task == nullptr) return begun;
  const std::vector<std::optional<RectI>> regions = begun.task->regions();
  begun.count = regions.size();
  if (regions.empty()) return begun;
  auto made = frame_of(frame.buffer, frame.format, device);
  if (!made) return where(made.error());
  const IdentityPtr& identity = ticket.identity;
  made->frame->source = identity->id;
  made->frame->generation = generation;
  made->frame->lease = std::make_shared<Kept>(made->hold, lease, identity);
  for (std::size_t i = 0; i < regions.size(); ++i) {
    begun.requests.push_back({.frame = made->frame,
                              .roi = regions[i],
                              .source = identity->lane(i),
                              .generation = generation});
  }
  begun.hold = std::move(made->hold);
  return begun;
}

}  // namespace penstock::gst
