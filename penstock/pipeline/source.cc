// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/source.h"

#include <fcntl.h>
#include <gst/rtsp/gstrtspmessage.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

/// The device of a V4L2 camera; empty for other sources.
std::string_view camera_of(std::string_view text) {
  constexpr std::string_view kScheme = "v4l2:";
  if (text.starts_with(kScheme)) {
    text.remove_prefix(kScheme.size());
    if (text.starts_with("//")) text.remove_prefix(2);
    return text.empty() ? "/dev/video0" : text;
  }
  const bool is_device = text.starts_with("/dev/video") || text.starts_with("/dev/v4l/");
  return is_device ? text : std::string_view();
}

Result<Source> file_source(std::string_view text, std::filesystem::path path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.is_valid()) {
    const int error = errno;
    const auto kind = error == EACCES || error == EPERM    ? ErrorKind::kPermission
                      : error == EMFILE || error == ENFILE ? ErrorKind::kExhausted
                      : error == EIO                       ? ErrorKind::kIo
                                                           : ErrorKind::kNotFound;
    return fail(kind, str_format("cannot open source '{}': {}", text,
                                 std::generic_category().message(error)));
  }
  std::error_code ec;
  if (std::filesystem::is_directory(path, ec)) {
    return fail(ErrorKind::kNotFound, str_format("source '{}' is a folder, not a video", text));
  }
  if (std::filesystem::is_regular_file(path, ec) && std::filesystem::file_size(path, ec) == 0) {
    return fail(ErrorKind::kCorrupt, str_format("source '{}' is empty", text));
  }
  Source source;
  source.kind = SourceKind::kFile;
  source.text = text;
  source.file = std::move(path);
  struct stat info{};
  // Kept open, as a FIFO's writer that waited for a reader would die of one that goes away again.
  if (::fstat(fd.get(), &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode))) {
    source.pipe = std::move(fd);
  }
  return source;
}

bool is_video(GstCaps* caps) {
  if (caps == nullptr || gst_caps_is_empty(caps) || gst_caps_is_any(caps)) return false;
  const gchar* name = gst_structure_get_name(gst_caps_get_structure(caps, 0));
  return g_str_has_prefix(name, "video/") || g_str_has_prefix(name, "image/");
}

// decodebin3 asks for every stream: 0 leaves it out, 1 decodes it, -1 lets decodebin3 choose.
// Choosing is right among several video streams (it takes one).
gint select_stream(GstElement*, GstStreamCollection*, GstStream* stream, gpointer) {
  return (gst_stream_get_stream_type(stream) & GST_STREAM_TYPE_VIDEO) != 0 ? -1 : 0;
}

gboolean select_rtsp_stream(GstElement*, guint, GstCaps* caps, gpointer) {
  const gchar* media = gst_structure_get_string(gst_caps_get_structure(caps, 0), "media");
  return media != nullptr && std::strcmp(media, "video") == 0;
}

void set_decoder_threads(GstBin*, GstBin*, GstElement* element, gpointer) {
  GObjectClass* type = G_OBJECT_GET_CLASS(element);
  // "max-threads" of libav's decoders, "n-threads" of dav1d's.
  for (const char* property : {"max-threads", "n-threads"}) {
    GParamSpec* spec = g_object_class_find_property(type, property);
    if (spec == nullptr) continue;
    if (G_IS_PARAM_SPEC_INT(spec)) g_object_set(element, property, 1, nullptr);
    if (G_IS_PARAM_SPEC_UINT(spec)) g_object_set(element, property, 1u, nullptr);
  }
}

// decodebin3 chooses the decoder by the GstStream's caps when stream-start leaves its queue. Until
// the parser's caps, which come right behind, have gone in, the GstStream has those of the demuxer,
// which no decoder takes when they are MPEG-TS's: the run ended with "no decoder", every other time
// on a busy machine. The pad before the queue knows the parser's caps by then.
GstPadProbeReturn give_parsed_caps(GstPad* pad, GstPadProbeInfo* info, gpointer) {
  GstEvent* event = GST_PAD_PROBE_INFO_EVENT(info);
  if (GST_EVENT_TYPE(event) != GST_EVENT_STREAM_START) return GST_PAD_PROBE_OK;
  GstStream* stream = nullptr;
  gst_event_parse_stream(event, &stream);
  GstPad* before = gst_pad_get_peer(pad);
  GstCaps* caps = before != nullptr ? gst_pad_get_current_caps(before) : nullptr;
  if (stream != nullptr && caps != nullptr) gst_stream_set_caps(stream, caps);
  gst_clear_caps(&caps);
  gst_clear_object(&before);
  gst_clear_object(&stream);
  return GST_PAD_PROBE_OK;
}

void watch_queue_pad(GstElement*, GstPad* pad, gpointer) {
  if (GST_PAD_DIRECTION(pad) != GST_PAD_SINK) return;
  gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, give_parsed_caps, nullptr, nullptr);
}

void watch_queue(GstBin*, GstBin*, GstElement* element, gpointer) {
  GstElementFactory* factory = gst_element_get_factory(element);
  if (factory == nullptr || std::strcmp(GST_OBJECT_NAME(factory), "multiqueue") != 0) return;
  g_signal_connect(element, "pad-added", G_CALLBACK(watch_queue_pad), nullptr);
}

GstPadProbeReturn drop_buffer(GstPad*, GstPadProbeInfo*, gpointer) { return GST_PAD_PROBE_DROP; }

// Some decoders and converters of still pictures crash on sizes that their headers may claim.
GstPadProbeReturn refuse_vast(GstPad* pad, GstPadProbeInfo* info, gpointer) {
  GstEvent* event = GST_PAD_PROBE_INFO_EVENT(info);
  if (GST_EVENT_TYPE(event) != GST_EVENT_CAPS) return GST_PAD_PROBE_OK;
  GstCaps* caps = nullptr;
  gst_event_parse_caps(event, &caps);
  const GstStructure* fields = gst_caps_get_structure(caps, 0);
  gint width = 0, height = 0;
  if (!gst_structure_get_int(fields, "width", &width) ||
      !gst_structure_get_int(fields, "height", &height)) {
    return GST_PAD_PROBE_OK;
  }
  if (width <= kMaxFrameSide && height <= kMaxFrameSide &&
      std::int64_t{width} * height <= kMaxSourcePixels) {
    return GST_PAD_PROBE_OK;
  }
  // Without caps it would find the size in the data.
  gst_pad_add_probe(pad,
                    GstPadProbeType(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST),
                    drop_buffer, nullptr, nullptr);
  GstElement* element = gst_pad_get_parent_element(pad);
  if (element == nullptr) return GST_PAD_PROBE_DROP;
  GST_ELEMENT_ERROR(element, STREAM, WRONG_TYPE,
                    ("Pictures of %dx%d are too large: at most %d a side and %d megapixels.", width,
                     height, kMaxFrameSide, int(kMaxSourcePixels / 1'000'000)),
                    (nullptr));
  gst_object_unref(element);
  return GST_PAD_PROBE_DROP;
}

void watch_decoder(GstBin*, GstBin*, GstElement* element, gpointer) {
  GstElementFactory* factory = gst_element_get_factory(element);
  if (factory == nullptr ||
      !gst_element_factory_list_is_type(factory, GST_ELEMENT_FACTORY_TYPE_DECODER)) {
    return;
  }
  GstPad* sink = gst_element_get_static_pad(element, "sink");
  if (sink == nullptr) return;
  gst_pad_add_probe(sink, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, refuse_vast, nullptr, nullptr);
  gst_object_unref(sink);
}

void forward_pad(GstElement*, GstPad* pad, gpointer bin) {
  GstStream* stream = gst_pad_get_stream(pad);
  bool video = false;
  if (stream != nullptr) {
    video = (gst_stream_get_stream_type(stream) & GST_STREAM_TYPE_VIDEO) != 0;
    gst_object_unref(stream);
  } else {
    GstCaps* caps = gst_pad_query_caps(pad, nullptr);
    video = is_video(caps);
    gst_caps_unref(caps);
  }
  if (!video) return;
  GstPad* ghost = gst_ghost_pad_new(nullptr, pad);
  gst_pad_set_active(ghost, TRUE);
  gst_element_add_pad(GST_ELEMENT(bin), ghost);
}

void link_rtp(GstElement*, GstPad* pad, gpointer decodebin) {
  GstPad* sink = gst_element_get_static_pad(GST_ELEMENT(decodebin), "sink");
  if (!gst_pad_is_linked(sink)) gst_pad_link(pad, sink);
  gst_object_unref(sink);
}

// rtspsrc follows redirects for ever, as fast as it can: hundreds of connections a second to a
// server that names itself. Each costs an OPTIONS and a DESCRIBE, twice where a password is asked.
gboolean allow_request(GstElement* source, GstRTSPMessage* message, gpointer asked) {
  constexpr int kMaxAsked = 24;
  int& count = *static_cast<int*>(asked);  // on rtspsrc's one thread
  const GstRTSPMethod method = message->type_data.request.method;
  if (method == GST_RTSP_PLAY) count = 0;
  if (method != GST_RTSP_OPTIONS && method != GST_RTSP_DESCRIBE) return TRUE;
  if (++count <= kMaxAsked) return TRUE;
  gst_element_post_message(
      source,
      gst_message_new_application(GST_OBJECT(source), gst_structure_new_empty(kSourceRedirects)));
  return FALSE;
}

// Installed on fdsrc, whose type finder says nothing of a stream without a byte: decodebin3 waits
// for a stream that never comes.
GstPadProbeReturn watch_first(GstPad* pad, GstPadProbeInfo* info, gpointer) {
  if ((GST_PAD_PROBE_INFO_TYPE(info) & GST_PAD_PROBE_TYPE_BUFFER) != 0) {
    return GST_PAD_PROBE_REMOVE;
  }
  if (GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)) != GST_EVENT_EOS) return GST_PAD_PROBE_OK;
  GstElement* source = gst_pad_get_parent_element(pad);
  if (source == nullptr) return GST_PAD_PROBE_REMOVE;
  gst_element_post_message(source, gst_message_new_application(
                                       GST_OBJECT(source), gst_structure_new_empty(kSourceEmpty)));
  gst_object_unref(source);
  return GST_PAD_PROBE_REMOVE;
}

std::string_view package_of(std::string_view factory) {
  if (factory.starts_with("avdec_")) return "gstreamer1.0-libav";
  for (std::string_view bad : {"openh264enc", "h264parse", "objectdetectionoverlay"}) {
    if (factory == bad) return "gstreamer1.0-plugins-bad";
  }
  for (std::string_view good : {"rtspsrc", "mp4mux", "jpegenc", "v4l2src"}) {
    if (factory == good) return "gstreamer1.0-plugins-good";
  }
  if (factory.starts_with("pen")) return "penstock's plugin";
  return "gstreamer1.0-plugins-base";
}

}  // namespace

std::string without_password_of(const Source& source, std::string text) {
  const PasswordSpan password = password_in(source.address);
  if (password.end == password.begin) return text;
  // With the user's name and the "@", however the rest of the address is written; then alone,
  // unless that would strike out half of every message.
  const std::size_t begin = source.address.find("://") + 3;
  const std::string userinfo = source.address.substr(begin, password.end + 1 - begin);
  replace_all(text, userinfo, source.address.substr(begin, password.begin - begin) + "***@");
  const std::string alone = source.address.substr(password.begin, password.end - password.begin);
  if (alone.size() >= 4) replace_all(text, alone, "***");
  return text;
}

Result<Source> parse_source(std::string_view text) {
  if (text.empty()) return fail(ErrorKind::kInvalidArgument, "the source is empty");
  if (const std::string_view device = camera_of(text); !device.empty()) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("source '{}' is a camera, which pipelines take: write "
                           "`sources: [{{name: camera, v4l2: {}}}]` into a YAML file "
                           "(docs/pipelines.md)",
                           text, device));
  }
  if (is_rtsp_address(text)) {
    Source source;
    source.kind = SourceKind::kRtsp;
    source.text = without_password(text);
    source.address = text;
    return source;
  }
  if (text.starts_with("file://")) {
    GError* error = nullptr;
    gchar* path = g_filename_from_uri(std::string(text).c_str(), nullptr, &error);
    if (path == nullptr) {
      Error wrong(ErrorKind::kInvalidArgument,
                  str_format("source '{}' is not a file: {}", text, error->message));
      g_error_free(error);
      return std::unexpected(std::move(wrong));
    }
    std::filesystem::path file(path);
    g_free(path);
    return file_source(text, std::move(file));
  }
  if (text.find("://") != std::string_view::npos) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("source '{}': only files and rtsp:// addresses are supported",
                           without_password(text)));
  }
  return file_source(text, std::filesystem::path(text));
}

void refuse_vast_pictures(GstBin* bin) {
  g_signal_connect(bin, "deep-element-added", G_CALLBACK(watch_decoder), nullptr);
}

bool demuxer_gave_up(GstBin* bin) {
  bool gave_up = false;
  const auto look_at = [](const GValue* item, gpointer result) {
    auto* element = GST_ELEMENT(g_value_get_object(item));
    GstElementFactory* factory = gst_element_get_factory(element);
    if (factory == nullptr ||
        !gst_element_factory_list_is_type(factory, GST_ELEMENT_FACTORY_TYPE_DEMUXER)) {
      return;
    }
    GST_OBJECT_LOCK(element);
    const bool made_none = element->numsrcpads == 0 && element->numsinkpads == 1;
    GstPad* pad = made_none ? GST_PAD(gst_object_ref(element->sinkpads->data)) : nullptr;
    GST_OBJECT_UNLOCK(element);
    if (pad == nullptr) return;
    // Only a demuxer that reads by itself has a task; one that is fed tells whoever feeds it.
    GST_OBJECT_LOCK(pad);
    const GstTask* task = GST_PAD_TASK(pad);
    if (task != nullptr && GST_TASK_STATE(task) == GST_TASK_PAUSED) {
      *static_cast<bool*>(result) = true;
    }
    GST_OBJECT_UNLOCK(pad);
    gst_object_unref(pad);
  };
  GstIterator* elements = gst_bin_iterate_recurse(bin);
  while (gst_iterator_foreach(elements, look_at, &gave_up) == GST_ITERATOR_RESYNC) {
    gst_iterator_resync(elements);
  }
  gst_iterator_free(elements);
  return gave_up;
}

Result<GstElement*> make_element(const char* factory, const char* name) {
  GstElement* element = gst_element_factory_make(factory, name);
  if (element == nullptr) {
    return fail(ErrorKind::kUnsupported,
                str_format("the GStreamer element '{}' is missing; it is usually in {}", factory,
                           package_of(factory)));
  }
  return element;
}

Result<GstElement*> make_decoder(const Source& source) {
  if (source.kind == SourceKind::kElement) {
    GstElement* element = source.make_element ? source.make_element() : nullptr;
    if (element == nullptr) return fail(ErrorKind::kInvalidArgument, "the source has no element");
    return element;
  }
  const bool file = source.kind == SourceKind::kFile;
  const bool device = source.kind == SourceKind::kDevice;
  const bool pipe = source.pipe.is_valid();
  auto input = make_element(pipe     ? "fdsrc"
                            : file   ? "filesrc"
                            : device ? "v4l2src"
                                     : "rtspsrc",
                            "source");
  if (!input) return input;
  auto decode = make_element("decodebin3", "decode");
  if (!decode) {
    gst_object_unref(*input);
    return decode;
  }
  GstElement* bin = gst_bin_new("input");
  // decodebin3 may have its queue from the start: watched before it is added.
  g_signal_connect(bin, "deep-element-added", G_CALLBACK(set_decoder_threads), nullptr);
  g_signal_connect(bin, "deep-element-added", G_CALLBACK(watch_queue), nullptr);
  refuse_vast_pictures(GST_BIN(bin));
  gst_bin_add_many(GST_BIN(bin), *input, *decode, nullptr);
  g_signal_connect(*decode, "select-stream", G_CALLBACK(select_stream), nullptr);
  g_signal_connect(*decode, "pad-added", G_CALLBACK(forward_pad), bin);
  if (file) {
    if (pipe) {
      // fdsrc waits in poll and can be told to stop; filesrc waits in open and read, and cannot.
      g_object_set(*input, "fd", source.pipe.get(), nullptr);
      GstPad* pad = gst_element_get_static_pad(*input, "src");
      gst_pad_add_probe(
          pad, GstPadProbeType(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM),
          watch_first, nullptr, nullptr);
      gst_object_unref(pad);
    } else {
      g_object_set(*input, "location", source.file.c_str(), nullptr);
    }
    gst_element_link(*input, *decode);
  } else if (device) {
    g_object_set(*input, "device", source.file.c_str(), nullptr);
    gst_element_link(*input, *decode);
  } else {
    // TCP: the analytics want every frame; a lost packet costs until the next key frame.
    gst_util_set_object_arg(G_OBJECT(*input), "protocols", "tcp");
    g_object_set(*input, "location", source.address.c_str(), "latency", 200u, nullptr);
    g_signal_connect(*input, "select-stream", G_CALLBACK(select_rtsp_stream), nullptr);
    g_signal_connect_data(
        *input, "before-send", G_CALLBACK(allow_request), new int(0),
        [](gpointer asked, GClosure*) { delete static_cast<int*>(asked); }, GConnectFlags(0));
    g_signal_connect(*input, "pad-added", G_CALLBACK(link_rtp), *decode);
  }
  return bin;
}

}  // namespace penstock
