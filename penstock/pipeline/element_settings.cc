// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/element_settings.h"

#include "penstock/base/str_format.h"
#include "penstock/pipeline/source.h"

namespace penstock {
namespace {

std::string factory_of(GstElement* element) {
  GstElementFactory* factory = gst_element_get_factory(element);
  return factory != nullptr ? GST_OBJECT_NAME(factory) : GST_ELEMENT_NAME(element);
}

/// A path may be any bytes, which GStreamer's reading of text drops when they are not UTF-8.
bool set_text(GstElement* element, const std::string& name, const std::string& value) {
  g_object_set(element, name.c_str(), value.c_str(), nullptr);
  gchar* text = nullptr;
  g_object_get(element, name.c_str(), &text, nullptr);
  const bool arrived = text != nullptr ? value == text : value.empty();
  g_free(text);
  return arrived;
}

bool set_value(GstElement* element, GParamSpec* spec, const std::string& value) {
  GValue given = G_VALUE_INIT;
  g_value_init(&given, spec->value_type);
  // Validating changes what is out of range.
  const bool taken =
      gst_value_deserialize(&given, value.c_str()) && !g_param_value_validate(spec, &given);
  if (taken) g_object_set_property(G_OBJECT(element), spec->name, &given);
  g_value_unset(&given);
  return taken;
}

/// The first error on the bus; what it says without the element's made-up name.
Error read_error(GstBus* bus, const std::string& factory) {
  GstMessage* message = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR);
  if (message == nullptr) {
    return Error(ErrorKind::kInvalidArgument,
                 str_format("{} does not start and does not say why", factory));
  }
  GError* error = nullptr;
  gst_message_parse_error(message, &error, nullptr);
  Error read(ErrorKind::kInvalidArgument, error->message);
  g_error_free(error);
  gst_message_unref(message);
  return read;
}

}  // namespace

Result<void> set_property(GstElement* element, const std::string& name, const std::string& value) {
  GParamSpec* spec = g_object_class_find_property(G_OBJECT_GET_CLASS(element), name.c_str());
  if (spec == nullptr || (spec->flags & G_PARAM_WRITABLE) == 0) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("{} has no property '{}'", factory_of(element), name));
  }
  const bool taken = spec->value_type == G_TYPE_STRING ? set_text(element, name, value)
                                                       : set_value(element, spec, value);
  if (taken) return {};
  return fail(ErrorKind::kInvalidArgument, str_format("{} does not take '{}' for its property '{}'",
                                                      factory_of(element), value, name));
}

Result<GstElement*> add_element(GstBin* bin, const ElementSettings& settings) {
  auto element = make_element(settings.factory.c_str(), settings.name.c_str());
  if (!element) return element;
  gst_bin_add(bin, *element);
  for (const auto& [name, value] : settings.properties) {
    PENSTOCK_TRY(set_property(*element, name, value));
  }
  return element;
}

Result<void> try_element(const ElementSettings& settings) {
  GstElement* bin = gst_pipeline_new("try");
  gst_object_ref_sink(bin);
  Result<void> outcome;
  if (auto element = add_element(GST_BIN(bin), settings); !element) {
    outcome = std::unexpected(std::move(element).error());
  } else if (gst_element_set_state(*element, GST_STATE_PAUSED) == GST_STATE_CHANGE_FAILURE) {
    GstBus* bus = gst_element_get_bus(bin);
    outcome = std::unexpected(read_error(bus, settings.factory));
    gst_object_unref(bus);
  }
  gst_element_set_state(bin, GST_STATE_NULL);
  gst_object_unref(bin);
  return outcome;
}

}  // namespace penstock
