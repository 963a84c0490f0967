//===- ParcDialect.td - The parc dialect -------------------*- tablegen -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARC_DIALECT_TD
#define PARC_DIALECT_TD

include "mlir/IR/OpBase.td"

def Parc_Dialect : Dialect {
  let name = "parc";
  let cppNamespace = "::mlir::parc";
  let summary = "meshes, shardings, collectives, stacks and steps";
  let description = [{
    What parallelising a model adds to it: the mesh, shardings and their
    constraints, resharding and collectives, parameters as module symbols, the
    repeated layer (`parc.stack`), and the optimizer step (`parc.step`).

    The dialect has no transformer op. What can be split in an op, and what
    that means, is told by the op through `ShardableOpInterface`.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
  }];
}

#endif // PARC_DIALECT_TD
