// SPDX-License-Identifier: Apache-2.0
#include "gst/ledger_list.h"

#include <string>

namespace penstock::gst {

void set_ledger(GstStructure* stats, const CopyLedger* ledger) {
  GValue rows = G_VALUE_INIT;
  g_value_init(&rows, GST_TYPE_LIST);
  if (ledger != nullptr) {
    for (const CopyLedger::Row& row : ledger->rows()) {
      GValue value = G_VALUE_INIT;
      g_value_init(&value, GST_TYPE_STRUCTURE);
      g_value_take_boxed(&value, gst_structure_new("penstock-ledger-row", "class", G_TYPE_STRING,
                                                   std::string(to_string(row.copy_class)).c_str(),
                                                   "site", G_TYPE_STRING, row.site.c_str(), "count",
                                                   G_TYPE_UINT64, guint64(row.count), "bytes",
                                                   G_TYPE_UINT64, guint64(row.bytes), nullptr));
      gst_value_list_append_and_take_value(&rows, &value);
    }
  }
  gst_structure_take_value(stats, "ledger", &rows);
}

}  // namespace penstock::gst
