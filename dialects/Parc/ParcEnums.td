//===- ParcEnums.td - Enumerations of the parc dialect -----*- tablegen -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARC_ENUMS_TD
#define PARC_ENUMS_TD

include "mlir/IR/EnumAttr.td"

def Parc_ReductionKind : I32EnumAttr<"ReductionKind", "how partial values combine", [
    I32EnumAttrCase<"Sum", 0, "sum">,
    I32EnumAttrCase<"Max", 1, "max">,
    I32EnumAttrCase<"Min", 2, "min">]> {
  let cppNamespace = "::mlir::parc";
}

#endif // PARC_ENUMS_TD
