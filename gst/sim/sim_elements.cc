// SPDX-License-Identifier: Apache-2.0
#include "gst/sim/sim_elements.h"

#include <gst/base/gstbasetransform.h>
#include <gst/video/video.h>

#include <cstddef>
#include <cstring>
#include <mutex>
#include <span>
#include <vector>

#include "gst/bus_error.h"
#include "gst/gst_ptr.h"
#include "gst/sharing.h"
#include "gst/storage_memory.h"
#include "penstock/memory/sim/sim_device.h"

using namespace penstock;
using namespace penstock::gst;

namespace {

constexpr char kSimCaps[] = "video/x-raw(memory:PenstockSim), format=NV12";
constexpr char kHostCaps[] = "video/x-raw, format=NV12";

struct Core {
  bool upload = false;
  std::mutex mutex;
  DevicePtr device;
  GstPtr<GstAllocator> allocator;
  GstPtr<GObject> display;
  GstVideoInfo info;  // Of both sides: the layout is the default one.
};

}  // namespace

// One class for both directions, distinguished by its subclass's flag.
struct PenSimTransfer {
  GstBaseTransform parent;
  Core* core;
};
struct PenSimTransferClass {
  GstBaseTransformClass parent_class;
};
G_DEFINE_ABSTRACT_TYPE(PenSimTransfer, pen_sim_transfer, GST_TYPE_BASE_TRANSFORM)

struct PenSimUpload {
  PenSimTransfer parent;
};
struct PenSimUploadClass {
  PenSimTransferClass parent_class;
};
G_DEFINE_TYPE(PenSimUpload, pen_sim_upload, pen_sim_transfer_get_type())

struct PenSimDownload {
  PenSimTransfer parent;
};
struct PenSimDownloadClass {
  PenSimTransferClass parent_class;
};
G_DEFINE_TYPE(PenSimDownload, pen_sim_download, pen_sim_transfer_get_type())

namespace {

Core& core_of(gpointer self) { return *static_cast<PenSimTransfer*>(self)->core; }

DevicePtr own_device(Core& core) {
  const std::lock_guard lock(core.mutex);
  return core.device;
}

/// The offered device, else (simupload only) a new one. Null: nobody has one.
DevicePtr ensure_device(GstElement* element) {
  Core& core = core_of(element);
  if (DevicePtr device = own_device(core)) return device;
  DevicePtr device = device_of(find_context(element, kDeviceContext).get());
  const bool made = device == nullptr && core.upload;
  if (made) device = SimDevice::create();
  {
    const std::lock_guard lock(core.mutex);
    core.device = device;
    if (core.display == nullptr) core.display.reset(G_OBJECT(g_object_new(G_TYPE_OBJECT, nullptr)));
  }
  if (made) publish_context(element, make_device_context(device).get());
  return device;
}

gboolean start(GstBaseTransform* transform) {
  if (ensure_device(GST_ELEMENT(transform)) != nullptr) return TRUE;
  post_error(GST_ELEMENT(transform), "sim", "starting",
             Error(ErrorKind::kNotFound, "no simupload or context offers the device"));
  return FALSE;
}

gboolean stop(GstBaseTransform* transform) {
  Core& core = core_of(transform);
  const std::lock_guard lock(core.mutex);
  core.device = nullptr;
  core.display = nullptr;
  return TRUE;
}

gboolean query(GstBaseTransform* transform, GstPadDirection direction, GstQuery* asked) {
  const gchar* type = nullptr;
  if (GST_QUERY_TYPE(asked) == GST_QUERY_CONTEXT && core_of(transform).upload &&
      gst_query_parse_context_type(asked, &type) && g_str_equal(type, kDeviceContext)) {
    const DevicePtr device = ensure_device(GST_ELEMENT(transform));
    gst_query_set_context(asked, make_device_context(device).get());
    return TRUE;
  }
  return GST_BASE_TRANSFORM_CLASS(pen_sim_transfer_parent_class)
      ->query(transform, direction, asked);
}

GstCaps* transform_caps(GstBaseTransform* transform, GstPadDirection direction, GstCaps* caps,
                        GstCaps* filter) {
  const bool to_sim = core_of(transform).upload == (direction == GST_PAD_SINK);
  CapsPtr other(gst_caps_copy(caps));
  for (guint i = 0; i < gst_caps_get_size(other.get()); ++i) {
    gst_caps_set_features(
        other.get(), i,
        to_sim ? gst_caps_features_from_string("memory:PenstockSim")
               : gst_caps_features_from_string(GST_CAPS_FEATURE_MEMORY_SYSTEM_MEMORY));
  }
  if (filter == nullptr) return other.release();
  return gst_caps_intersect_full(filter, other.get(), GST_CAPS_INTERSECT_FIRST);
}

gboolean set_caps(GstBaseTransform* transform, GstCaps* in, GstCaps*) {
  return gst_video_info_from_caps(&core_of(transform).info, in);
}

gboolean unit_size(GstBaseTransform*, GstCaps* caps, gsize* size) {
  GstVideoInfo info;
  if (!gst_video_info_from_caps(&info, caps)) return FALSE;
  *size = GST_VIDEO_INFO_SIZE(&info);
  return TRUE;
}

gboolean decide_allocation(GstBaseTransform*, GstQuery*) { return TRUE; }

void copy_metadata(GstBuffer* out, GstBuffer* in, GstVideoInfo& info) {
  gst_buffer_copy_into(
      out, in,
      static_cast<GstBufferCopyFlags>(GST_BUFFER_COPY_FLAGS | GST_BUFFER_COPY_TIMESTAMPS |
                                      GST_BUFFER_COPY_META),
      0, -1);
  while (GstVideoMeta* meta = gst_buffer_get_video_meta(out)) {
    gst_buffer_remove_meta(out, &meta->meta);
  }
  gst_buffer_add_video_meta_full(out, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&info),
                                 GST_VIDEO_INFO_WIDTH(&info), GST_VIDEO_INFO_HEIGHT(&info),
                                 GST_VIDEO_INFO_N_PLANES(&info), info.offset, info.stride);
}

/// Rows of every plane between a mapped frame and bytes in the default layout.
void copy_rows(GstVideoFrame& frame, GstVideoInfo& info, std::span<std::byte> packed, bool pack) {
  for (guint p = 0; p < GST_VIDEO_INFO_N_PLANES(&info); ++p) {
    const gint rows = GST_VIDEO_INFO_COMP_HEIGHT(&info, p);
    for (gint y = 0; y < rows; ++y) {
      auto* host = static_cast<std::byte*>(GST_VIDEO_FRAME_PLANE_DATA(&frame, p)) +
                   y * GST_VIDEO_FRAME_PLANE_STRIDE(&frame, p);
      std::byte* ours = packed.data() + info.offset[p] + y * info.stride[p];
      const std::size_t bytes = GST_VIDEO_INFO_WIDTH(&info);
      std::memcpy(pack ? ours : host, pack ? host : ours, bytes);
    }
  }
}

GstFlowReturn fail_flow(GstBaseTransform* transform, const char* operation, const Error& error) {
  post_error(GST_ELEMENT(transform), "sim", operation, error);
  return GST_FLOW_ERROR;
}

/// Makes and fills the output at once; transform() has nothing left to do.
GstFlowReturn prepare_upload(GstBaseTransform* transform, GstBuffer* in, GstBuffer** out) {
  Core& core = core_of(transform);
  const DevicePtr device = own_device(core);
  const std::size_t size = GST_VIDEO_INFO_SIZE(&core.info);
  auto storage = device->allocate(size);
  if (!storage) return fail_flow(transform, "allocating a frame", storage.error());
  std::vector<std::byte> packed(size);
  GstVideoFrame frame;
  if (!gst_video_frame_map(&frame, &core.info, in, GST_MAP_READ)) return GST_FLOW_ERROR;
  copy_rows(frame, core.info, packed, true);
  gst_video_frame_unmap(&frame);
  if (auto done = device->upload({*storage, 0, size}, packed, TransferPurpose::kTestContent);
      !done) {
    return fail_flow(transform, "uploading a frame", done.error());
  }
  *out = gst_buffer_new();
  gst_buffer_append_memory(
      *out, wrap_storage(core.allocator.get(), *storage, size, core.display.get()).release());
  copy_metadata(*out, in, core.info);
  return GST_FLOW_OK;
}

GstFlowReturn prepare_download(GstBaseTransform* transform, GstBuffer* in, GstBuffer** out) {
  Core& core = core_of(transform);
  const StoragePtr storage = storage_of(gst_buffer_peek_memory(in, 0));
  if (storage == nullptr) {
    return fail_flow(transform, "downloading a frame",
                     Error(ErrorKind::kUnsupported, "the buffer is not in PenstockSim memory"));
  }
  const std::size_t size = GST_VIDEO_INFO_SIZE(&core.info);
  std::vector<std::byte> packed(size);
  if (auto done = own_device(core)->read_back(packed, {storage, 0, size}, {},
                                              TransferPurpose::kTestContent);
      !done) {
    return fail_flow(transform, "downloading a frame", done.error());
  }
  *out = gst_buffer_new_allocate(nullptr, size, nullptr);
  gst_buffer_fill(*out, 0, packed.data(), size);
  copy_metadata(*out, in, core.info);
  return GST_FLOW_OK;
}

GstFlowReturn nothing_left(GstBaseTransform*, GstBuffer*, GstBuffer*) { return GST_FLOW_OK; }

void finalize(GObject* object) {
  delete static_cast<PenSimTransfer*>(static_cast<gpointer>(object))->core;
  G_OBJECT_CLASS(pen_sim_transfer_parent_class)->finalize(object);
}

void add_templates(gpointer klass, const char* sink, const char* src) {
  auto* element_class = GST_ELEMENT_CLASS(klass);
  const CapsPtr sink_caps(gst_caps_from_string(sink));
  const CapsPtr src_caps(gst_caps_from_string(src));
  gst_element_class_add_pad_template(
      element_class, gst_pad_template_new("sink", GST_PAD_SINK, GST_PAD_ALWAYS, sink_caps.get()));
  gst_element_class_add_pad_template(
      element_class, gst_pad_template_new("src", GST_PAD_SRC, GST_PAD_ALWAYS, src_caps.get()));
}

}  // namespace

static void pen_sim_transfer_class_init(PenSimTransferClass* klass) {
  G_OBJECT_CLASS(klass)->finalize = finalize;
  auto* transform = GST_BASE_TRANSFORM_CLASS(klass);
  transform->start = start;
  transform->stop = stop;
  transform->query = query;
  transform->transform_caps = transform_caps;
  transform->set_caps = set_caps;
  transform->get_unit_size = unit_size;
  transform->decide_allocation = decide_allocation;
  transform->transform = nothing_left;
}

static void pen_sim_transfer_init(PenSimTransfer* self) {
  self->core = new Core;
  self->core->allocator = new_storage_allocator("PenstockSim");
}

static void pen_sim_upload_class_init(PenSimUploadClass* klass) {
  add_templates(klass, kHostCaps, kSimCaps);
  GST_BASE_TRANSFORM_CLASS(klass)->prepare_output_buffer = prepare_upload;
  gst_element_class_set_static_metadata(GST_ELEMENT_CLASS(klass), "Simulated upload",
                                        "Filter/Video", "Moves frames to simulated device memory",
                                        "The Penstock authors");
}

static void pen_sim_upload_init(PenSimUpload* self) { self->parent.core->upload = true; }

static void pen_sim_download_class_init(PenSimDownloadClass* klass) {
  add_templates(klass, kSimCaps, kHostCaps);
  GST_BASE_TRANSFORM_CLASS(klass)->prepare_output_buffer = prepare_download;
  gst_element_class_set_static_metadata(GST_ELEMENT_CLASS(klass), "Simulated download",
                                        "Filter/Video", "Moves frames from simulated device memory",
                                        "The Penstock authors");
}

static void pen_sim_download_init(PenSimDownload*) {}

namespace penstock::gst {

bool register_sim_elements(GstPlugin* plugin) {
  return gst_element_register(plugin, "simupload", GST_RANK_NONE, pen_sim_upload_get_type()) &&
         gst_element_register(plugin, "simdownload", GST_RANK_NONE, pen_sim_download_get_type());
}

}  // namespace penstock::gst
