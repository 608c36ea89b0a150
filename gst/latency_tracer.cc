// SPDX-License-Identifier: Apache-2.0

// GstTracer's API is called unstable; it has not changed since 1.8.
#define GST_USE_UNSTABLE_API
#include "gst/latency_tracer.h"

#include <gst/analytics/analytics.h>
#include <gst/gsttracer.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <span>
#include <string>

#include "gst/gst_ptr.h"
#include "penstock/base/file_ops.h"
#include "penstock/base/json_text.h"
#include "penstock/base/printable.h"
#include "penstock/base/str_append.h"
#include "penstock/base/str_format.h"
#include "penstock/observe/latency_book.h"

using namespace penstock;
using namespace penstock::gst;

G_DECLARE_FINAL_TYPE(PenLatencyTracer, pen_latency_tracer, PEN, LATENCY_TRACER, GstTracer)

namespace {

struct TracerCore {
  LatencyBook book;
  std::string file;  // set at construction only
  GQuark stage_of_element = 0;
};

enum Property : guint { kFile = 1, kFigures };

}  // namespace

struct _PenLatencyTracer {
  GstTracer parent;
  TracerCore* core;
};

G_DEFINE_TYPE(PenLatencyTracer, pen_latency_tracer, GST_TYPE_TRACER)

namespace {

using ElementPtr = GstPtr<GstElement>;
using PadPtr = GstPtr<GstPad>;

/// The element that the pad is one of; null for those of bins, which only hand on.
ElementPtr element_of(GstPad* pad) {
  ElementPtr element(gst_pad_get_parent_element(pad));
  if (element != nullptr && GST_IS_BIN(element.get())) return nullptr;
  return element;
}

LatencyBook::Stage* stage_of(TracerCore& core, GstElement* element) {
  auto* const known = static_cast<LatencyBook::Stage*>(
      g_object_get_qdata(G_OBJECT(element), core.stage_of_element));
  if (known != nullptr) return known;
  gchar* const path = gst_object_get_path_string(GST_OBJECT(element));
  LatencyBook::Stage* const stage = core.book.stage(path);
  g_free(path);
  g_object_set_qdata(G_OBJECT(element), core.stage_of_element, stage);
  return stage;
}

std::string stream_id_of(GstPad* pad) {
  gchar* const id = gst_pad_get_stream_id(pad);
  std::string text = id != nullptr ? id : "";
  g_free(id);
  return text;
}

PassingFrame frame_of(GstBuffer* buffer) {
  // NONE is -1.
  return {.pts_ns = static_cast<std::int64_t>(GST_BUFFER_PTS(buffer)),
          .memory = gst_buffer_n_memory(buffer) > 0 ? gst_buffer_peek_memory(buffer, 0) : nullptr};
}

std::string id_in(GstEvent* event) {
  const gchar* id = nullptr;
  gst_event_parse_stream_start(event, &id);
  return id != nullptr ? id : "";
}

using Visit = std::function<void(GstBuffer*, const std::string& stream)>;

/// The frames of one stream of a container.
void visit_stream(const GstAnalyticsBatchStream& stream, const Visit& visit) {
  std::string id = str_format("stream-{}", stream.index);
  for (GstEvent* event : std::span(stream.sticky_events, stream.n_sticky_events)) {
    if (GST_EVENT_TYPE(event) == GST_EVENT_STREAM_START) id = id_in(event);
  }
  for (GstMiniObject* object : std::span(stream.objects, stream.n_objects)) {
    if (GST_IS_BUFFER(object)) {
      visit(GST_BUFFER_CAST(object), id);
    } else if (GST_IS_BUFFER_LIST(object)) {
      GstBufferList* const list = GST_BUFFER_LIST_CAST(object);
      for (guint i = 0; i < gst_buffer_list_length(list); ++i) {
        visit(gst_buffer_list_get(list, i), id);
      }
    } else if (GST_IS_EVENT(object) &&
               GST_EVENT_TYPE(GST_EVENT_CAST(object)) == GST_EVENT_STREAM_START) {
      id = id_in(GST_EVENT_CAST(object));
    }
  }
}

/// The buffer itself, of the pad's stream, or the frames that are in it.
void visit_frames(GstBuffer* buffer, const std::string& stream, const Visit& visit) {
  const GstAnalyticsBatchMeta* const batch = gst_buffer_get_analytics_batch_meta(buffer);
  if (batch == nullptr) return visit(buffer, stream);
  for (const GstAnalyticsBatchStream& part : std::span(batch->streams, batch->n_streams)) {
    visit_stream(part, visit);
  }
}

/// What leaves nowhere would only wait in the book. A demultiplexer gets its pads with its first
/// frame, so the class counts, too.
bool has_way_out(GstElement* element) {
  for (const GList* at = gst_element_get_pad_template_list(element); at != nullptr; at = at->next) {
    if (GST_PAD_TEMPLATE_DIRECTION(at->data) == GST_PAD_SRC) return true;
  }
  GST_OBJECT_LOCK(element);
  const bool has = element->numsrcpads > 0;
  GST_OBJECT_UNLOCK(element);
  return has;
}

void take(TracerCore& core, GstPad* from, GstBuffer* buffer) {
  if (const ElementPtr element = element_of(from); element != nullptr) {
    LatencyBook::Stage* const stage = stage_of(core, element.get());
    visit_frames(buffer, {}, [&](GstBuffer* frame, const std::string&) {
      core.book.leave(stage, frame_of(frame));
    });
  }
  const PadPtr to(gst_pad_get_peer(from));
  if (to == nullptr) return;
  const ElementPtr element = element_of(to.get());
  if (element == nullptr || !has_way_out(element.get())) return;
  LatencyBook::Stage* const stage = stage_of(core, element.get());
  // The other pad gets its sticky events with the first frame, after this.
  visit_frames(buffer, stream_id_of(from), [&](GstBuffer* frame, const std::string& stream) {
    core.book.arrive(stage, frame_of(frame), stream);
  });
}

/// The pad whose frame this thread is about to push. Before that, a new link gets the pad's sticky
/// events: they begin nothing anew.
thread_local GstPad* pushing = nullptr;

void on_push(GObject* self, GstClockTime, GstPad* pad, GstBuffer* buffer) {
  pushing = pad;
  take(*PEN_LATENCY_TRACER(self)->core, pad, buffer);
}

void on_push_list(GObject* self, GstClockTime, GstPad* pad, GstBufferList* list) {
  pushing = pad;
  for (guint i = 0; i < gst_buffer_list_length(list); ++i) {
    take(*PEN_LATENCY_TRACER(self)->core, pad, gst_buffer_list_get(list, i));
  }
}

void on_pushed(GObject*, GstClockTime, GstPad*, GstFlowReturn) { pushing = nullptr; }

/// Times come again after these, and what waited for them has gone.
void on_event(GObject* self, GstClockTime, GstPad* pad, GstEvent* event) {
  const GstEventType type = GST_EVENT_TYPE(event);
  if (type != GST_EVENT_FLUSH_STOP && (type != GST_EVENT_STREAM_START || pad == pushing)) return;
  const PadPtr to(gst_pad_get_peer(pad));
  const ElementPtr element = to != nullptr ? element_of(to.get()) : nullptr;
  if (element == nullptr) return;
  TracerCore& core = *PEN_LATENCY_TRACER(self)->core;
  LatencyBook::Stage* const stage = stage_of(core, element.get());
  if (type == GST_EVENT_FLUSH_STOP) {
    core.book.forget(stage);
  } else {
    core.book.forget(stage, id_in(event));
  }
}

guint64 ns(Nanoseconds value) { return static_cast<guint64>(value.count()); }

/// "penstock-latency" with a list `rows`.
GstStructure* figures_structure(const LatencyBook& book) {
  GValue rows = G_VALUE_INIT;
  g_value_init(&rows, GST_TYPE_LIST);
  for (const LatencyFigures& row : book.figures()) {
    GValue value = G_VALUE_INIT;
    g_value_init(&value, GST_TYPE_STRUCTURE);
    g_value_take_boxed(
        &value,
        gst_structure_new("penstock-latency-row", "element", G_TYPE_STRING, row.stage.c_str(),
                          "stream", G_TYPE_STRING, row.stream.c_str(), "frames", G_TYPE_UINT64,
                          guint64(row.frames), "p50", G_TYPE_UINT64, ns(row.p50), "p95",
                          G_TYPE_UINT64, ns(row.p95), "max", G_TYPE_UINT64, ns(row.max), nullptr));
    gst_value_list_append_and_take_value(&rows, &value);
  }
  GstStructure* const made = gst_structure_new("penstock-latency", "given-up", G_TYPE_UINT64,
                                               guint64(book.given_up()), nullptr);
  gst_structure_take_value(made, "rows", &rows);
  return made;
}

std::string to_json_line(const LatencyFigures& row) {
  std::string line = R"({"element":)";
  append_json_string(line, row.stage);
  line += R"(,"stream":)";
  append_json_string(line, row.stream);
  return line + str_format(R"(,"frames":{},"p50_ns":{},"p95_ns":{},"max_ns":{}}})"
                           "\n",
                           row.frames, row.p50.count(), row.p95.count(), row.max.count());
}

void write_file(const TracerCore& core) {
  std::string text;
  for (const LatencyFigures& row : core.book.figures()) text += to_json_line(row);
  FileOps& files = FileOps::system();
  const auto file = files.create(core.file);
  auto written = file ? files.write_all(file->get(), std::as_bytes(std::span(text)))
                      : Result<void>(std::unexpected(file.error()));
  // The process ends; nobody is left to ask.
  if (!written) {
    std::fprintf(stderr, "penlatency: writing '%s': %s\n", core.file.c_str(),
                 written.error().message().c_str());
  }
}

std::string to_table(const LatencyBook& book) {
  const auto ms = [](Nanoseconds value) { return double(value.count()) / 1e6; };
  std::string out = "penlatency: ms from buffer in to buffer out\n";
  str_append(out, "{:>9} {:>9} {:>9} {:>8}  element, stream\n", "p50", "p95", "max", "frames");
  for (const LatencyFigures& row : book.figures()) {
    str_append(out, "{:>9.3f} {:>9.3f} {:>9.3f} {:>8}  {}, {}\n", ms(row.p50), ms(row.p95),
               ms(row.max), row.frames, printable(row.stage), printable(row.stream));
  }
  return out;
}

void set_property(GObject* object, guint id, const GValue* value, GParamSpec* spec) {
  if (id != kFile) {
    G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
    return;
  }
  const gchar* const path = g_value_get_string(value);
  PEN_LATENCY_TRACER(object)->core->file = path != nullptr ? path : "";
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec* spec) {
  const TracerCore& core = *PEN_LATENCY_TRACER(object)->core;
  switch (id) {
    case kFile:
      return g_value_set_string(value, core.file.c_str());
    case kFigures:
      return g_value_take_boxed(value, figures_structure(core.book));
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
  }
}

void constructed(GObject* object) {
  G_OBJECT_CLASS(pen_latency_tracer_parent_class)->constructed(object);
  GstTracer* const tracer = GST_TRACER(object);
  // Of this tracer: there may be another.
  PEN_LATENCY_TRACER(object)->core->stage_of_element =
      g_quark_from_string(str_format("penlatency-{}", static_cast<void*>(object)).c_str());
  gst_tracing_register_hook(tracer, "pad-push-pre", G_CALLBACK(on_push));
  gst_tracing_register_hook(tracer, "pad-push-list-pre", G_CALLBACK(on_push_list));
  for (const char* done : {"pad-push-post", "pad-push-list-post"}) {
    gst_tracing_register_hook(tracer, done, G_CALLBACK(on_pushed));
  }
  gst_tracing_register_hook(tracer, "pad-push-event-pre", G_CALLBACK(on_event));
}

/// GStreamer lets go of its tracers in gst_deinit() only, when nothing streams any more.
void finalize(GObject* object) {
  TracerCore* const core = PEN_LATENCY_TRACER(object)->core;
  if (core->file.empty()) {
    std::fputs(to_table(core->book).c_str(), stderr);
  } else {
    write_file(*core);
  }
  delete core;
  G_OBJECT_CLASS(pen_latency_tracer_parent_class)->finalize(object);
}

}  // namespace

static void pen_latency_tracer_class_init(PenLatencyTracerClass* klass) {
  auto* object_class = G_OBJECT_CLASS(klass);
  object_class->set_property = set_property;
  object_class->get_property = get_property;
  object_class->constructed = constructed;
  object_class->finalize = finalize;
  g_object_class_install_property(
      object_class, kFile,
      g_param_spec_string("file", "File",
                          "Where a line of JSON for each element and stream is written when the "
                          "program ends; empty: a table on stderr",
                          "",
                          static_cast<GParamFlags>(G_PARAM_READWRITE | G_PARAM_CONSTRUCT_ONLY |
                                                   G_PARAM_STATIC_STRINGS)));
  g_object_class_install_property(
      object_class, kFigures,
      g_param_spec_boxed("figures", "Figures", "Elements and streams with their times so far",
                         GST_TYPE_STRUCTURE,
                         static_cast<GParamFlags>(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS)));
  gst_tracer_class_set_use_structure_params(GST_TRACER_CLASS(klass), TRUE);
}

static void pen_latency_tracer_init(PenLatencyTracer* self) { self->core = new TracerCore; }

namespace penstock::gst {

bool register_tracers(GstPlugin* plugin) {
  return gst_tracer_register(plugin, "penlatency", pen_latency_tracer_get_type()) != FALSE;
}

}  // namespace penstock::gst
