// SPDX-License-Identifier: Apache-2.0
#include "gst/sharing.h"

#include <utility>

#include "penstock/base/str_format.h"

namespace penstock::gst {
namespace {

// A shared_ptr travels in a GstStructure as a boxed copy of itself.
template <typename T>
GType boxed_type(const char* name) {
  return g_boxed_type_register_static(
      name, [](gpointer p) -> gpointer { return new T(*static_cast<T*>(p)); },
      [](gpointer p) { delete static_cast<T*>(p); });
}

GType device_type() {
  static const GType type = boxed_type<DevicePtr>("PenDevice");
  return type;
}

GType registry_type() {
  static const GType type = boxed_type<std::shared_ptr<InferenceRegistry>>("PenInferenceRegistry");
  return type;
}

template <typename T>
ContextPtr make_context(const char* context_type, const char* field, GType type, T value) {
  ContextPtr context(gst_context_new(context_type, TRUE));
  gst_structure_set(gst_context_writable_structure(context.get()), field, type, &value, nullptr);
  return context;
}

template <typename T>
T value_of(const GstContext* context, const char* field, GType type) {
  if (context == nullptr) return nullptr;
  const GValue* value = gst_structure_get_value(gst_context_get_structure(context), field);
  if (value == nullptr || !G_VALUE_HOLDS(value, type)) return nullptr;
  return *static_cast<T*>(g_value_get_boxed(value));
}

ContextPtr ask_neighbours(GstElement* element, const char* type) {
  GstPtr<GstQuery> query(gst_query_new_context(type));
  const auto ask = [](GstElement*, GstPad* pad, gpointer asked) -> gboolean {
    return !gst_pad_peer_query(pad, static_cast<GstQuery*>(asked));  // FALSE ends the walk.
  };
  if (gst_element_foreach_src_pad(element, ask, query.get()) &&
      gst_element_foreach_sink_pad(element, ask, query.get())) {
    return nullptr;
  }
  GstContext* context = nullptr;
  gst_query_parse_context(query.get(), &context);
  return ContextPtr(context == nullptr ? nullptr : gst_context_ref(context));
}

}  // namespace

ContextPtr make_device_context(DevicePtr device) {
  return make_context(kDeviceContext, "device", device_type(), std::move(device));
}

DevicePtr device_of(const GstContext* context) {
  return value_of<DevicePtr>(context, "device", device_type());
}

ContextPtr find_context(GstElement* element, const char* type) {
  if (ContextPtr set{gst_element_get_context(element, type)}) return set;
  if (ContextPtr found = ask_neighbours(element, type)) {
    gst_element_set_context(element, found.get());
    return found;
  }
  // Bins and the application answer inside this call, by set_context().
  gst_element_post_message(element, gst_message_new_need_context(GST_OBJECT(element), type));
  return ContextPtr(gst_element_get_context(element, type));
}

void publish_context(GstElement* element, GstContext* context) {
  gst_element_set_context(element, context);
  gst_element_post_message(
      element, gst_message_new_have_context(GST_OBJECT(element), gst_context_ref(context)));
}

Result<OpenedInferencePtr> InferenceRegistry::open(const std::string& instance,
                                                   const std::string& settings,
                                                   OpenedInferencePtr held, const Opener& open) {
  // Held while opening: elements that start at the same time are to share one model, not load two.
  const std::lock_guard lock(mutex_);
  if (const auto entry = entries_.find(instance);
      entry != entries_.end() && entry->second.settings == settings) {
    if (auto living = entry->second.inference.lock()) return living;
  }
  // The caller may have been the only user of what stands in its way.
  held.reset();
  std::erase_if(entries_, [](const auto& entry) { return entry.second.inference.expired(); });
  if (const auto entry = entries_.find(instance); entry != entries_.end()) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("model-instance '{}' is in use with other settings ({}; here {})",
                           instance, entry->second.settings, settings));
  }
  auto opened = open();
  if (opened) entries_[instance] = {settings, *opened};
  return opened;
}

std::shared_ptr<InferenceRegistry> shared_registry(GstElement* element) {
  using RegistryPtr = std::shared_ptr<InferenceRegistry>;
  const ContextPtr found = find_context(element, kInferenceContext);
  if (auto registry = value_of<RegistryPtr>(found.get(), "registry", registry_type())) {
    return registry;
  }
  auto registry = std::make_shared<InferenceRegistry>();
  const ContextPtr made = make_context(kInferenceContext, "registry", registry_type(), registry);
  publish_context(element, made.get());
  return registry;
}

}  // namespace penstock::gst
