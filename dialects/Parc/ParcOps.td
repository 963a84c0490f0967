//===- ParcOps.td - All ops of the parc dialect ------------*- tablegen -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARC_OPS_TD
#define PARC_OPS_TD

include "ParcModelOps.td"
include "ParcLocalOps.td"
include "ParcStreamOps.td"

#endif // PARC_OPS_TD
