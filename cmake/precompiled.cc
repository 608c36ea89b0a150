// SPDX-License-Identifier: Apache-2.0
// Nothing: a target must have a source, and the precompiled headers are made for a target.
