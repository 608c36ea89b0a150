// SPDX-License-Identifier: Apache-2.0
//
// For tests of an element's properties and of what is said when they can't be set.
#pragma once

#include <gst/gst.h>

#include <string>
#include <utility>
#include <vector>

namespace penstock::gst {

/// Collects warnings instead of printing them.
class WarningTrap {
 public:
  WarningTrap()
      : previous_(g_log_set_default_handler(
            [](const gchar*, GLogLevelFlags level, const gchar* text, gpointer data) {
              if (level & G_LOG_LEVEL_WARNING) {
                static_cast<WarningTrap*>(data)->texts_.emplace_back(text);
              }
            },
            this)) {}
  WarningTrap(const WarningTrap&) = delete;
  WarningTrap& operator=(const WarningTrap&) = delete;
  ~WarningTrap() { g_log_set_default_handler(previous_, nullptr); }
  std::vector<std::string> take() { return std::exchange(texts_, {}); }

 private:
  GLogFunc previous_;
  std::vector<std::string> texts_;
};

/// Those of the element's own class.
inline std::vector<GParamSpec*> own_properties(GstElement* element) {
  guint count = 0;
  GParamSpec** all = g_object_class_list_properties(G_OBJECT_GET_CLASS(element), &count);
  std::vector<GParamSpec*> own;
  for (guint i = 0; i < count; ++i) {
    if (all[i]->owner_type == G_OBJECT_TYPE(element)) own.push_back(all[i]);
  }
  g_free(static_cast<gpointer>(all));
  return own;
}

}  // namespace penstock::gst
