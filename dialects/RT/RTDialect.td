//===- RTDialect.td - The rt dialect -----------------------*- tablegen -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef RT_DIALECT_TD
#define RT_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"

def RT_Dialect : Dialect {
  let name = "rt";
  let cppNamespace = "::mlir::rt";
  let summary = "what an emitted program says to the runtime";
  let description = [{
    The exit of the compiler: tables (mesh, communicators, parameters,
    schedule), one `rt.role` for each kind of stage, and in it one op for each
    entry point of the runtime. Everything is decided before: printing this
    dialect as C++ chooses nothing. Values are tensors of one rank; their
    layouts are row-major; all but scalar ops, views and constants of other
    dialects is gone.
  }];
  let useDefaultTypePrinterParser = 1;
}

def RT_LayersType : TypeDef<RT_Dialect, "Layers"> {
  let mnemonic = "layers";
  let summary = "one value for each of a rank's layers";
  let description = [{
    What an `rt.stack` keeps of each layer, to be read by another stack over
    the same layers.

    Example: `!rt.layers<tensor<4x16x32xf32>>`
  }];
  let parameters = (ins "Type":$element);
  let assemblyFormat = "`<` $element `>`";
}

def RT_PendingType : TypeDef<RT_Dialect, "Pending"> {
  let mnemonic = "pending";
  let summary = "a value that a group under way will give";
  let description = [{
    What `rt.start` gives and `rt.wait` takes.

    Example: `!rt.pending<tensor<4x32xf32>>`
  }];
  let parameters = (ins "Type":$element);
  let assemblyFormat = "`<` $element `>`";
}

#endif // RT_DIALECT_TD
