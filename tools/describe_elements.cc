// SPDX-License-Identifier: Apache-2.0
//
// Prints, as JSON, the pads and properties of every element and tracer of a plugin, as
// tools/element_docs.py puts them into docs/elements.md.
//
//   describe_elements build/release/gst/libgstpenstock.so

// For tracer factories.
#define GST_USE_UNSTABLE_API
#include <gst/gst.h>
#include <gst/gsttracerfactory.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/json_text.h"
#include "penstock/base/str_format.h"

namespace {

using penstock::append_json_string;
using penstock::str_format;

/// {"key":"text",...} of pairs.
using Fields = std::vector<std::pair<const char*, std::string>>;

std::string object_of(const Fields& fields) {
  std::string out = "{";
  for (const auto& [key, text] : fields) {
    if (out.size() > 1) out += ',';
    append_json_string(out, key);
    out += ':';
    append_json_string(out, text);
  }
  return out + "}";
}

std::string list_of(const std::vector<std::string>& items) {
  std::string out = "[";
  for (const std::string& item : items) {
    if (out.size() > 1) out += ',';
    out += item;
  }
  return out + "]";
}

/// Values as gst-launch takes them.
std::string text_of(const GValue* value) {
  if (G_VALUE_HOLDS_STRING(value)) {
    const gchar* const text = g_value_get_string(value);
    return text != nullptr ? text : "";
  }
  // The shortest that reads back: 0.2, not 0.200000003.
  if (G_VALUE_HOLDS_FLOAT(value)) return str_format("{}", g_value_get_float(value));
  if (G_VALUE_HOLDS_ENUM(value)) {
    auto* const kind = static_cast<GEnumClass*>(g_type_class_ref(G_VALUE_TYPE(value)));
    const GEnumValue* const one = g_enum_get_value(kind, g_value_get_enum(value));
    const std::string nick = one != nullptr ? one->value_nick : "";
    g_type_class_unref(kind);
    return nick;
  }
  if (G_VALUE_HOLDS_FLAGS(value)) {
    // As one would write it: by nicks, which GStreamer's own text has not.
    auto* const kind = static_cast<GFlagsClass*>(g_type_class_ref(G_VALUE_TYPE(value)));
    const guint set = g_value_get_flags(value);
    std::string nicks;
    for (const GFlagsValue& flag : std::span(kind->values, kind->n_values)) {
      if (flag.value == 0 || (set & flag.value) != flag.value) continue;
      if (!nicks.empty()) nicks += '+';
      nicks += flag.value_nick;
    }
    g_type_class_unref(kind);
    return nicks;
  }
  gchar* const text = gst_value_serialize(value);
  std::string copy = text != nullptr ? text : "";
  g_free(text);
  return copy;
}

template <typename Number>
std::string range_of(const char* type, Number least, Number most) {
  return str_format("{}, {}..{}", type, least, most);
}

std::string names_of(const char* type, const auto& values) {
  std::string names = type;
  for (const auto& value : values) {
    if (value.value_nick == nullptr) continue;
    names += names == type ? ": " : ", ";
    names += value.value_nick;
  }
  return names;
}

std::string type_of(GParamSpec* spec) {
  if (G_IS_PARAM_SPEC_STRING(spec)) return "text";
  if (G_IS_PARAM_SPEC_BOOLEAN(spec)) return "boolean";
  if (G_IS_PARAM_SPEC_UINT(spec)) {
    return range_of("integer", G_PARAM_SPEC_UINT(spec)->minimum, G_PARAM_SPEC_UINT(spec)->maximum);
  }
  if (G_IS_PARAM_SPEC_INT(spec)) {
    return range_of("integer", G_PARAM_SPEC_INT(spec)->minimum, G_PARAM_SPEC_INT(spec)->maximum);
  }
  if (G_IS_PARAM_SPEC_UINT64(spec)) {
    return range_of("integer", G_PARAM_SPEC_UINT64(spec)->minimum,
                    G_PARAM_SPEC_UINT64(spec)->maximum);
  }
  if (G_IS_PARAM_SPEC_INT64(spec)) {
    return range_of("integer", G_PARAM_SPEC_INT64(spec)->minimum,
                    G_PARAM_SPEC_INT64(spec)->maximum);
  }
  if (G_IS_PARAM_SPEC_FLOAT(spec)) {
    return range_of("number", G_PARAM_SPEC_FLOAT(spec)->minimum, G_PARAM_SPEC_FLOAT(spec)->maximum);
  }
  if (G_IS_PARAM_SPEC_DOUBLE(spec)) {
    return range_of("number", G_PARAM_SPEC_DOUBLE(spec)->minimum,
                    G_PARAM_SPEC_DOUBLE(spec)->maximum);
  }
  if (G_IS_PARAM_SPEC_ENUM(spec)) {
    const GEnumClass* const kind = G_PARAM_SPEC_ENUM(spec)->enum_class;
    return names_of("one of", std::span(kind->values, kind->n_values));
  }
  if (G_IS_PARAM_SPEC_FLAGS(spec)) {
    const GFlagsClass* const kind = G_PARAM_SPEC_FLAGS(spec)->flags_class;
    return names_of("any of", std::span(kind->values, kind->n_values));
  }
  return spec->value_type == GST_TYPE_STRUCTURE ? "structure" : g_type_name(spec->value_type);
}

std::string changes_of(GParamSpec* spec) {
  if ((spec->flags & G_PARAM_WRITABLE) == 0) return "never";
  if ((spec->flags & G_PARAM_CONSTRUCT_ONLY) != 0) return "when made";
  if ((spec->flags & GST_PARAM_MUTABLE_READY) != 0) return "NULL, READY";
  return "always";
}

/// Own properties, not those of parents.
std::string properties_of(GType type) {
  auto* const klass = static_cast<GObjectClass*>(g_type_class_ref(type));
  guint count = 0;
  GParamSpec** const specs = g_object_class_list_properties(klass, &count);
  std::vector<std::string> items;
  for (GParamSpec* spec : std::span(specs, count)) {
    if (spec->owner_type != type) continue;
    const bool writable = (spec->flags & G_PARAM_WRITABLE) != 0;
    items.push_back(object_of(
        {{"name", spec->name},
         {"type", type_of(spec)},
         {"default", writable ? text_of(g_param_spec_get_default_value(spec)) : std::string()},
         {"changes", changes_of(spec)},
         {"meaning", g_param_spec_get_blurb(spec)}}));
  }
  g_free(specs);
  g_type_class_unref(klass);
  return list_of(items);
}

std::string pads_of(GstElementFactory* factory) {
  std::vector<std::string> items;
  for (const GList* at = gst_element_factory_get_static_pad_templates(factory); at != nullptr;
       at = at->next) {
    auto* const pad = static_cast<GstStaticPadTemplate*>(at->data);
    constexpr const char* kPresence[] = {"always", "sometimes", "on request"};
    items.push_back(object_of({{"name", pad->name_template},
                               {"direction", pad->direction == GST_PAD_SINK ? "sink" : "src"},
                               {"presence", kPresence[pad->presence]},
                               {"caps", pad->static_caps.string}}));
  }
  return list_of(items);
}

/// {"kind":...,"name":...,"pads":[...],"properties":[...]}; "" for what is neither of both.
std::string describe(GstPluginFeature* feature) {
  GstPluginFeature* const loaded = gst_plugin_feature_load(feature);
  if (loaded == nullptr) return {};
  std::string out;
  const std::string name = gst_plugin_feature_get_name(loaded);
  const auto whole = [&](const char* kind, const std::string& pads, GType type) {
    std::string fields = object_of({{"kind", kind}, {"name", name}});
    fields.pop_back();
    return str_format("{},\"pads\":{},\"properties\":{}}}", fields, pads, properties_of(type));
  };
  if (GST_IS_ELEMENT_FACTORY(loaded)) {
    auto* const factory = GST_ELEMENT_FACTORY(loaded);
    out = whole("element", pads_of(factory), gst_element_factory_get_element_type(factory));
  } else if (GST_IS_TRACER_FACTORY(loaded)) {
    out = whole("tracer", "[]", gst_tracer_factory_get_tracer_type(GST_TRACER_FACTORY(loaded)));
  }
  gst_object_unref(loaded);
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: describe_elements PLUGIN.so\n");
    return 64;
  }
  gst_init(nullptr, nullptr);
  GError* error = nullptr;
  GstPlugin* const plugin = gst_plugin_load_file(argv[1], &error);
  if (plugin == nullptr) {
    std::fprintf(stderr, "describe_elements: %s\n", error->message);
    g_error_free(error);
    return 69;
  }
  GList* const features =
      gst_registry_get_feature_list_by_plugin(gst_registry_get(), gst_plugin_get_name(plugin));
  std::vector<std::string> items;
  for (GList* at = features; at != nullptr; at = at->next) {
    std::string item = describe(GST_PLUGIN_FEATURE(at->data));
    if (!item.empty()) items.push_back(std::move(item));
  }
  gst_plugin_feature_list_free(features);
  gst_object_unref(plugin);
  std::ranges::sort(items);
  std::printf("%s\n", list_of(items).c_str());
  return 0;
}
