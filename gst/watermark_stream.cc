// SPDX-License-Identifier: Apache-2.0
#include "gst/watermark_stream.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "gst/buffer_frame.h"
#include "gst/drawn_records.h"
#include "gst/storage_memory.h"
#include "gst/zone_messages.h"
#include "penstock/base/str_format.h"

namespace penstock::gst {
namespace {

/// What one output frame keeps until the last copy of its memory goes (contract W02). The slot is
/// let go of last: whoever waits for it finds the storage in the pool.
struct Slot {
  OutputSlots::Lease lease;
  StoragePtr storage;
  GstPtr<GObject> display;
};

/// The zones with what `records` counted in those of their names.
std::vector<OverlayZone> with_counts(std::vector<OverlayZone> zones, const DrawnRecords& records) {
  for (OverlayZone& drawn : zones) {
    if (drawn.is_closed) {
      const auto zone = std::ranges::find(records.zones, drawn.name, &ZoneCount::name);
      if (zone == records.zones.end()) continue;
      drawn.count = str_format("{} (+{} -{})", zone->inside, zone->entered, zone->left);
    } else {
      const auto line = std::ranges::find(records.lines, drawn.name, &LineCount::name);
      if (line == records.lines.end()) continue;
      drawn.count = str_format("+{} -{}", line->forwards, line->backwards);
    }
  }
  return zones;
}

/// Metadata about the memory of the buffer that it is on, or that keeps another buffer.
bool is_about_memory(GType api) {
  return gst_meta_api_type_has_tag(api, g_quark_from_static_string(GST_META_TAG_MEMORY_STR)) ||
         gst_meta_api_type_has_tag(api,
                                   g_quark_from_static_string(GST_META_TAG_MEMORY_REFERENCE_STR)) ||
         api == GST_VIDEO_META_API_TYPE;
}

void copy_metadata(GstBuffer* out, GstBuffer* in, const GstVideoInfo& info) {
  gst_buffer_copy_into(
      out, in,
      static_cast<GstBufferCopyFlags>(GST_BUFFER_COPY_FLAGS | GST_BUFFER_COPY_TIMESTAMPS |
                                      GST_BUFFER_COPY_META),
      0, -1);
  gst_buffer_foreach_meta(
      out,
      [](GstBuffer*, GstMeta** meta, gpointer) -> gboolean {
        if (is_about_memory((*meta)->info->api)) *meta = nullptr;
        return TRUE;
      },
      nullptr);
  gst_buffer_add_video_meta_full(out, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&info),
                                 GST_VIDEO_INFO_WIDTH(&info), GST_VIDEO_INFO_HEIGHT(&info),
                                 GST_VIDEO_INFO_N_PLANES(&info), info.offset, info.stride);
}

}  // namespace

WatermarkStream::WatermarkStream(DevicePtr device, std::unique_ptr<Compositor> compositor,
                                 std::shared_ptr<OutputSlots> slots, std::vector<OverlayZone> zones,
                                 WatermarkEvents events)
    : device_(std::move(device)),
      compositor_(std::move(compositor)),
      slots_(std::move(slots)),
      zones_(std::move(zones)),
      events_(std::move(events)),
      allocator_(new_storage_allocator("PenstockSim")) {
  gst_video_info_init(&output_info_);
}

Result<void> WatermarkStream::set_format(const VideoFormat& format, const OverlayStyle& style) {
  auto overlay = Overlay::create(style, format.width, format.height);
  if (!overlay) return std::unexpected(std::move(overlay).error());
  overlay_ = *std::move(overlay);
  format_ = format;
  gst_video_info_set_format(&output_info_, GST_VIDEO_FORMAT_BGRA, static_cast<guint>(format.width),
                            static_cast<guint>(format.height));
  has_told_dropped_ = false;
  return {};
}

Result<std::shared_ptr<const Drawing>> WatermarkStream::drawing_of(GstBuffer* input) {
  const DrawnRecords records = read_drawn(input, format_.width, format_.height);
  const std::vector<OverlayZone> zones = with_counts(zones_, records);
  auto drawn = overlay_->draw({.objects = records.objects,
                               .classes = records.classes,
                               .zones = zones,
                               .masks = records.masks ? &*records.masks : nullptr,
                               .shown_id_offset = -kTrackIdOffset});
  if (!drawn) return std::unexpected(std::move(drawn).error());
  const DrawList& list = drawn->list;
  const std::uint64_t dropped = list.dropped() + records.left_out;
  commands_ += list.commands().size();
  dropped_ += dropped;
  misplaced_ += list.misplaced();
  if (dropped > 0 && !std::exchange(has_told_dropped_, true)) {
    events_.on_dropped(
        Error(ErrorKind::kExhausted,
              str_format("{} drawing commands of a frame are beyond its limit of {}, or of {} "
                         "pictures' worth of pixels, and are left out; further ones are counted "
                         "in 'stats' only",
                         dropped, kMaxDrawCommands, kMaxDrawnPictures)));
  }
  return std::make_shared<const Drawing>(*std::move(drawn));
}

Result<StoragePtr> WatermarkStream::take_slot(GstBuffer* input) {
  auto lease = slots_->acquire([this] {
    events_.on_late(Error(ErrorKind::kExhausted,
                          str_format("all {} output frames have been held downstream for 1 s; "
                                     "waiting for one",
                                     OutputSlots::kSlots)));
  });
  if (lease == nullptr) return StoragePtr();
  auto slot = std::make_shared<Slot>();
  slot->lease = std::move(lease);
  if (GObject* display = display_of(gst_buffer_peek_memory(input, 0)); display != nullptr) {
    slot->display.reset(G_OBJECT(g_object_ref(display)));
  }
  auto storage = device_->allocate(GST_VIDEO_INFO_SIZE(&output_info_));
  if (!storage) return std::unexpected(std::move(storage).error());
  slot->storage = *std::move(storage);
  Storage* bytes = slot->storage.get();
  return StoragePtr(std::move(slot), bytes);
}

BufferPtr WatermarkStream::output_of(GstBuffer* input, StoragePtr storage) const {
  BufferPtr output(gst_buffer_new());
  const gsize size = GST_VIDEO_INFO_SIZE(&output_info_);
  const auto host = storage->host_bytes();
  GstMemory* memory = nullptr;
  if (host.empty()) {
    GObject* display = display_of(gst_buffer_peek_memory(input, 0));
    memory = wrap_storage(allocator_.get(), std::move(storage), size, display).release();
  } else {
    // Parts and shares of it keep it; a deep copy is memory of its own.
    memory = gst_memory_new_wrapped(static_cast<GstMemoryFlags>(0), host.data(), size, 0, size,
                                    new StoragePtr(std::move(storage)),
                                    [](gpointer owner) { delete static_cast<StoragePtr*>(owner); });
  }
  gst_buffer_append_memory(output.get(), memory);
  copy_metadata(output.get(), input, output_info_);
  return output;
}

Result<BufferPtr> WatermarkStream::draw(GstBuffer* input) {
  auto frame = frame_of(input, format_, device_->id());
  if (!frame) return std::unexpected(std::move(frame).error());
  auto drawing = drawing_of(input);
  if (!drawing) return std::unexpected(std::move(drawing).error());
  auto storage = take_slot(input);
  if (!storage) return std::unexpected(std::move(storage).error());
  if (*storage == nullptr) return BufferPtr();
  const auto stride = static_cast<std::size_t>(GST_VIDEO_INFO_PLANE_STRIDE(&output_info_, 0));
  auto done = compositor_->run(frame->frame, *std::move(drawing), *storage, stride);
  if (!done) return std::unexpected(std::move(done).error());
  if (!slots_->await(*done)) return BufferPtr();
  if (auto outcome = done->wait(); !outcome) return std::unexpected(std::move(outcome).error());
  ++frames_;
  return output_of(input, *std::move(storage));
}

WatermarkStream::Stats WatermarkStream::stats() const {
  return {.frames = frames_, .commands = commands_, .dropped = dropped_, .misplaced = misplaced_};
}

}  // namespace penstock::gst
