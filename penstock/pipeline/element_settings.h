// SPDX-License-Identifier: Apache-2.0
//
// Properties of elements, given as text. GObject takes a value that is out of range for one in
// range, and says nothing of text that it can't read; here both are errors that name element,
// property and value.
#pragma once

#include <gst/gst.h>

#include <string>
#include <utility>
#include <vector>

#include "penstock/base/error.h"

namespace penstock {

/// kInvalidArgument for a property that the element has not, that can't be written, or that does
/// not take `value`.
Result<void> set_property(GstElement* element, const std::string& name, const std::string& value);

/// An element to make, with its properties as text.
struct ElementSettings {
  std::string factory;
  std::string name;
  std::vector<std::pair<std::string, std::string>> properties = {};
};

/// Made, named, set and added to `bin`.
Result<GstElement*> add_element(GstBin* bin, const ElementSettings& settings);

/// Whether an element of these settings starts: what it says on its way to PAUSED, alone. For
/// elements that read their properties then (pentrack, penzone) and open nothing.
Result<void> try_element(const ElementSettings& settings);

}  // namespace penstock
