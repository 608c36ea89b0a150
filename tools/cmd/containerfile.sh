#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ./dev containerfile [--check]
exec python3 "$(dirname "$0")/../containerfile.py" "$@"
