// SPDX-License-Identifier: Apache-2.0
#include "gst/pendemux.h"

#include <gst/base/gstflowcombiner.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "gst/batch_container.h"
#include "gst/bus_error.h"
#include "gst/gst_ptr.h"
#include "penstock/base/str_format.h"

using namespace penstock;
using namespace penstock::gst;

namespace {

/// A stream that has come out of containers and not gone from them.
struct Branch {
  GstPtr<GstPad> pad;
  std::vector<EventPtr> sent;  ///< Sticky events as they were in the container.
  bool added = false;          ///< To the element.
  bool ended = false;
};

/// All of it is the sink thread's, and when that has stopped, the state change's.
struct DemuxCore {
  std::map<std::string, Branch> branches;  ///< By the id that the container gives the stream.
  GstFlowCombiner* flows = gst_flow_combiner_new();
};

GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE(
    "sink", GST_PAD_SINK, GST_PAD_ALWAYS,
    GST_STATIC_CAPS("multistream/x-analytics-batch(meta:GstAnalyticsBatchMeta)"));
GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE(
    "src_%u", GST_PAD_SRC, GST_PAD_SOMETIMES, GST_STATIC_CAPS("video/x-raw(ANY)"));

}  // namespace

struct _PenDemux {
  GstElement parent;
  GstPad* sinkpad;
  DemuxCore* core;
};

G_DEFINE_TYPE(PenDemux, pen_demux, GST_TYPE_ELEMENT)

namespace {

constexpr char kHost[] = "cpu";

struct Name {
  guint number = 0;
  std::string id;
};

/// What penmux made of "ID" that came in at its pad sink_7: "sink_7/ID". Containers of others have
/// other ids.
std::optional<Name> name_of(std::string_view stream_id) {
  constexpr std::string_view kPrefix = "sink_";
  if (!stream_id.starts_with(kPrefix)) return std::nullopt;
  Name name;
  const char* const end = stream_id.data() + stream_id.size();
  const auto [rest, error] = std::from_chars(stream_id.data() + kPrefix.size(), end, name.number);
  if (error != std::errc() || rest == end || *rest != '/') return std::nullopt;
  name.id.assign(rest + 1, end);
  return name;
}

std::string free_pad_name(PenDemux* self, const std::string& stream_id) {
  std::set<std::string> taken;
  for (const auto& [id, branch] : self->core->branches) {
    taken.insert(GST_OBJECT_NAME(branch.pad.get()));
  }
  const auto name = name_of(stream_id);
  for (guint number = name ? name->number : 0;; ++number) {
    std::string wanted = str_format("src_{}", number);
    if (!taken.contains(wanted)) return wanted;
  }
}

void remove_branch(PenDemux* self, std::map<std::string, Branch>::iterator entry) {
  const Branch& branch = entry->second;
  if (!branch.ended) gst_pad_push_event(branch.pad.get(), gst_event_new_eos());
  gst_flow_combiner_remove_pad(self->core->flows, branch.pad.get());
  gst_pad_set_active(branch.pad.get(), FALSE);
  gst_element_remove_pad(GST_ELEMENT(self), branch.pad.get());
  self->core->branches.erase(entry);
}

void remove_all(PenDemux* self) {
  auto& branches = self->core->branches;
  while (!branches.empty()) remove_branch(self, branches.begin());
}

/// The stream's own start again: containers of penmux say before the id where it came in.
EventPtr own_event(GstEvent* event) {
  const gchar* id = nullptr;
  if (GST_EVENT_TYPE(event) == GST_EVENT_STREAM_START) gst_event_parse_stream_start(event, &id);
  const auto name = id == nullptr ? std::nullopt : name_of(id);
  if (!name) return EventPtr(gst_event_ref(event));
  EventPtr own(gst_event_copy(event));
  gst_structure_set(gst_event_writable_structure(own.get()), "stream-id", G_TYPE_STRING,
                    name->id.c_str(), nullptr);
  return own;
}

/// Those that the pad does not have already.
void send_sticky(Branch& branch, std::vector<EventPtr> sticky) {
  for (EventPtr& event : sticky) {
    const bool known = std::ranges::any_of(
        branch.sent, [&](const EventPtr& sent) { return sent.get() == event.get(); });
    if (known) continue;
    if (GST_EVENT_TYPE(event.get()) == GST_EVENT_STREAM_START) branch.ended = false;
    gst_pad_push_event(branch.pad.get(), own_event(event.get()).release());
  }
  branch.sent = std::move(sticky);
}

Branch& branch_of(PenDemux* self, const std::string& id) {
  const auto found = self->core->branches.find(id);
  if (found != self->core->branches.end()) return found->second;
  const std::string name = free_pad_name(self, id);
  Branch& branch = self->core->branches[id];
  branch.pad.reset(
      GST_PAD(gst_object_ref_sink(gst_pad_new_from_static_template(&src_template, name.c_str()))));
  GstPad* pad = branch.pad.get();
  gst_pad_use_fixed_caps(pad);
  gst_pad_set_active(pad, TRUE);
  gst_flow_combiner_add_pad(self->core->flows, pad);
  return branch;
}

GstFlowReturn send_object(PenDemux* self, Branch& branch, ObjectPtr object) {
  GstPad* pad = branch.pad.get();
  if (GST_IS_EVENT(object.get())) {
    GstEvent* event = GST_EVENT_CAST(object.release());
    if (GST_EVENT_TYPE(event) == GST_EVENT_EOS) branch.ended = true;
    gst_pad_push_event(pad, event);
    return GST_FLOW_OK;
  }
  if (GST_IS_BUFFER_LIST(object.get())) {
    return gst_flow_combiner_update_pad_flow(
        self->core->flows, pad, gst_pad_push_list(pad, GST_BUFFER_LIST_CAST(object.release())));
  }
  return gst_flow_combiner_update_pad_flow(self->core->flows, pad,
                                           gst_pad_push(pad, GST_BUFFER_CAST(object.release())));
}

GstFlowReturn send_stream(PenDemux* self, ContainerStream stream) {
  Branch& branch = branch_of(self, stream_id_of(stream));
  send_sticky(branch, std::move(stream.sticky));
  // With its caps and segment there, so that whoever links it knows what comes.
  if (!std::exchange(branch.added, true)) {
    gst_element_add_pad(GST_ELEMENT(self), branch.pad.get());
  }
  GstFlowReturn flow = GST_FLOW_OK;
  for (ObjectPtr& object : stream.objects) {
    flow = send_object(self, branch, std::move(object));
    if (flow != GST_FLOW_OK) break;
  }
  return flow;
}

/// Every stream says who it is, by another name than the others, and what its frames are.
Result<std::set<std::string>> read_ids(const std::vector<ContainerStream>& streams) {
  std::set<std::string> ids;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const std::string id = stream_id_of(streams[i]);
    const char* const fault = id.empty()                       ? "has no stream-start"
                              : caps_of(streams[i]) == nullptr ? "has no caps"
                              : !ids.insert(id).second         ? "has the id of another"
                                                               : nullptr;
    if (fault == nullptr) continue;
    return std::unexpected(Error(ErrorKind::kCorrupt,
                                 str_format("stream {} of the container, '{}', {}", i, id, fault)));
  }
  return ids;
}

void remove_gone(PenDemux* self, const std::set<std::string>& present) {
  auto& branches = self->core->branches;
  for (auto entry = branches.begin(); entry != branches.end();) {
    const auto next = std::next(entry);
    if (!present.contains(entry->first)) remove_branch(self, entry);
    entry = next;
  }
}

GstFlowReturn fail(PenDemux* self, const Error& error) {
  post_error(GST_ELEMENT(self), kHost, "reading a container", error);
  return GST_FLOW_ERROR;
}

GstFlowReturn sink_chain(GstPad*, GstObject* parent, GstBuffer* buffer) {
  auto* self = PEN_DEMUX(parent);
  auto streams = take_container(BufferPtr(buffer));
  if (!streams) return fail(self, streams.error());
  const auto ids = read_ids(*streams);
  if (!ids) return fail(self, ids.error());
  remove_gone(self, *ids);
  GstFlowReturn flow = GST_FLOW_OK;
  for (ContainerStream& stream : *streams) {
    // What one branch says, the others' frames don't suffer from; the combination does.
    const GstFlowReturn combined = send_stream(self, std::move(stream));
    if (flow == GST_FLOW_OK) flow = combined;
  }
  return flow;
}

void end_all(PenDemux* self) {
  for (auto& [id, branch] : self->core->branches) {
    if (!branch.ended) gst_pad_push_event(branch.pad.get(), gst_event_new_eos());
    branch.ended = true;
  }
}

gboolean sink_event(GstPad* pad, GstObject* parent, GstEvent* event) {
  auto* self = PEN_DEMUX(parent);
  switch (GST_EVENT_TYPE(event)) {
    case GST_EVENT_EOS:
      end_all(self);
      break;
    // Of the containers, not of what is in them.
    case GST_EVENT_STREAM_START:
    case GST_EVENT_CAPS:
    case GST_EVENT_SEGMENT:
    case GST_EVENT_TAG:
    case GST_EVENT_GAP:
      break;
    case GST_EVENT_FLUSH_STOP:
      // Pads forget their segment with it.
      for (auto& [id, branch] : self->core->branches) {
        branch.sent.clear();
        branch.ended = false;
      }
      gst_flow_combiner_reset(self->core->flows);
      return gst_pad_event_default(pad, parent, event);
    default:
      return gst_pad_event_default(pad, parent, event);
  }
  gst_event_unref(event);
  return TRUE;
}

GstStateChangeReturn change_state(GstElement* element, GstStateChange transition) {
  const auto result = GST_ELEMENT_CLASS(pen_demux_parent_class)->change_state(element, transition);
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY) {
    auto* self = PEN_DEMUX(element);
    remove_all(self);
    gst_flow_combiner_reset(self->core->flows);
  }
  return result;
}

void finalize(GObject* object) {
  DemuxCore* core = PEN_DEMUX(object)->core;
  gst_flow_combiner_unref(core->flows);
  delete core;
  G_OBJECT_CLASS(pen_demux_parent_class)->finalize(object);
}

}  // namespace

static void pen_demux_class_init(PenDemuxClass* klass) {
  auto* element_class = GST_ELEMENT_CLASS(klass);
  G_OBJECT_CLASS(klass)->finalize = finalize;
  element_class->change_state = change_state;
  gst_element_class_add_static_pad_template(element_class, &sink_template);
  gst_element_class_add_static_pad_template(element_class, &src_template);
  gst_element_class_set_static_metadata(element_class, "Penstock stream demux", "Demuxer/Video",
                                        "Takes the streams out of batch containers",
                                        "The Penstock authors");
}

static void pen_demux_init(PenDemux* self) {
  self->core = new DemuxCore;
  self->sinkpad = gst_pad_new_from_static_template(&sink_template, "sink");
  gst_pad_set_chain_function(self->sinkpad, sink_chain);
  gst_pad_set_event_function(self->sinkpad, sink_event);
  gst_element_add_pad(GST_ELEMENT(self), self->sinkpad);
}
