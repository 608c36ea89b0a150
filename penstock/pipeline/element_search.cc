// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/element_search.h"

namespace penstock {

GstElement* find_last(GstIterator* elements, const std::function<bool(GstElement*)>& wanted) {
  struct Search {
    const std::function<bool(GstElement*)>& wanted;
    GstElement* found = nullptr;
  } search{wanted};
  const auto look_at = [](const GValue* item, gpointer data) {
    auto& into = *static_cast<Search*>(data);
    auto* element = GST_ELEMENT(g_value_get_object(item));
    if (!into.wanted(element)) return;
    gst_object_replace(reinterpret_cast<GstObject**>(&into.found), GST_OBJECT(element));
  };
  while (gst_iterator_foreach(elements, look_at, &search) == GST_ITERATOR_RESYNC) {
    gst_iterator_resync(elements);
    // What was found may be gone by now.
    gst_object_replace(reinterpret_cast<GstObject**>(&search.found), nullptr);
  }
  gst_iterator_free(elements);
  return search.found;
}

}  // namespace penstock
