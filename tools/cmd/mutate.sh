#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ./dev mutate: see tools/mutate.py
exec python3 "$(dirname "$0")/../mutate.py" "$@"
