//===- RTEnums.td - Enumerations of the rt dialect ---------*- tablegen -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef RT_ENUMS_TD
#define RT_ENUMS_TD

include "mlir/IR/EnumAttr.td"

def RT_Combiner : I32EnumAttr<"Combiner", "how values are combined", [
    I32EnumAttrCase<"Sum", 0, "sum">,
    I32EnumAttrCase<"Max", 1, "max">,
    I32EnumAttrCase<"Min", 2, "min">]> {
  let cppNamespace = "::mlir::rt";
}

#endif // RT_ENUMS_TD
