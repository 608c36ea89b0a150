// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

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

}  // namespace penstock::gst
