//===- NNDialect.cpp - The nn dialect -------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Registration of the nn dialect, and its ops' generated code.
///
//===----------------------------------------------------------------------===//

#include "NN/NN.h"
#include "NN/NNFold.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::nn;

#include "NN/NNDialect.cpp.inc"

/// `[1.0, 0.1]`, each number so that it reads back as the same double; the
/// attribute's own format keeps six digits.
static ParseResult parseDoubles(OpAsmParser &parser,
                                DenseF64ArrayAttr &attribute) {
  SmallVector<double> values;
  auto parseOne = [&]() { return parser.parseFloat(values.emplace_back()); };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
    return failure();
  attribute = parser.getBuilder().getDenseF64ArrayAttr(values);
  return success();
}

static void printDoubles(OpAsmPrinter &printer, Operation *,
                         DenseF64ArrayAttr attribute) {
  printer << '[';
  llvm::interleaveComma(attribute.asArrayRef(), printer, [&](double value) {
    printer.printFloat(APFloat(value));
  });
  printer << ']';
}

#define GET_OP_CLASSES
#include "NN/NNOps.cpp.inc"

void NNDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "NN/NNOps.cpp.inc"
      >();
  addFoldInterface(*this);
}
