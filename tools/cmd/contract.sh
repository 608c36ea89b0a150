#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ./dev contract: see tools/contract.py
exec python3 "$(dirname "$0")/../contract.py" "$@"
