// SPDX-License-Identifier: Apache-2.0
//
// What a device touched, as a field of an element's `stats`:
//
//   ledger=(GstValueList of penstock-ledger-row, class=(string), site=(string), count=(guint64),
//   bytes=(guint64))
#pragma once

#include <gst/gst.h>

#include "penstock/observe/copy_ledger.h"

namespace penstock::gst {

/// An empty list without a ledger.
void set_ledger(GstStructure* stats, const CopyLedger* ledger);

}  // namespace penstock::gst
