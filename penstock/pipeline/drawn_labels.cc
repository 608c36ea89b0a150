// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/drawn_labels.h"

#include <glib.h>

namespace penstock {

std::string drawn_label(std::string_view label) {
  gchar* valid = g_utf8_make_valid(label.data(), gssize(label.size()));
  std::string text;
  long length = 0;
  for (const gchar* at = valid; *at != '\0'; at = g_utf8_next_char(at), ++length) {
    if (length == kMaxDrawnLabel) {
      text += "\u2026";
      break;
    }
    if (g_unichar_iscntrl(g_utf8_get_char(at))) {
      text += ' ';
    } else {
      text.append(at, g_utf8_next_char(at));
    }
  }
  g_free(valid);
  gchar* escaped = g_markup_escape_text(text.c_str(), gssize(text.size()));
  std::string markup(escaped);
  g_free(escaped);
  return markup;
}

}  // namespace penstock
