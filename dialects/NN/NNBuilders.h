//===- NNBuilders.h - Loop nests that decompositions are made of -*- C++
//-*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The vocabulary of the nn ops' decompositions: maps, reductions and
/// contractions over a space of loops, for static and dynamic sizes. A tensor
/// is read or written by naming, for each of its dimensions, the loop that
/// indexes it. Bodies compute in at least f32: narrower floats are widened on
/// entry and narrowed on exit, so a low precision appears in storage only.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DIALECTS_NN_NNBUILDERS_H
#define PARC_DIALECTS_NN_NNBUILDERS_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::nn {

using Loops = SmallVector<unsigned, 6>;
using Sizes = SmallVector<OpFoldResult, 6>;

/// A tensor and, for each of its dimensions, the loop that indexes it. A loop
/// that no dimension names broadcasts the tensor.
struct Access {
  Value tensor;
  Loops loops;
};

/// What a nest writes: the loops and sizes of its dimensions, its elements.
struct Output {
  Loops loops;
  Sizes sizes;
  Type element;
};

/// One element from the elements of the inputs.
using Body = function_ref<Value(ImplicitLocOpBuilder &, ValueRange)>;
/// One element a result.
using MultiBody =
    function_ref<SmallVector<Value>(ImplicitLocOpBuilder &, ValueRange)>;

/// How terms of a reduction combine. Max starts at minus infinity, the bottom
/// of the exact domain, which enters no other arithmetic; of integers at the
/// least. Min is of integers only, and starts at the greatest.
enum class Combine { Sum, Max, Min };

/// The loops `begin` to `end` (excluded).
Loops loopRange(unsigned begin, unsigned end);

/// The type that values stored as `element` are computed in: f32 or f64.
Type computeType(Type element);

/// Size of a dimension: an attribute where static, else `tensor.dim`.
OpFoldResult dimSize(ImplicitLocOpBuilder &b, Value tensor, int64_t dim);
Sizes dimSizes(ImplicitLocOpBuilder &b, Value tensor);
/// What `index` of a dimension of `size` elements, folded for `parts` parts,
/// stands for (see nn.fold).
Value foldedIndexOf(ImplicitLocOpBuilder &b, Value index, OpFoldResult size,
                    int64_t parts);
/// `size` as an index value.
Value indexValue(ImplicitLocOpBuilder &b, OpFoldResult size);
/// `size` as a float of type `type`.
Value floatValue(ImplicitLocOpBuilder &b, OpFoldResult size, Type type);
/// A float constant; `value` is exact where `type` can hold it.
Value floatConstant(ImplicitLocOpBuilder &b, Type type, double value);
/// Minus infinity, where maxima start: it may meet nothing but a maximum.
Value bottomConstant(ImplicitLocOpBuilder &b, Type type);
Value integerConstant(ImplicitLocOpBuilder &b, uint64_t value);
Value indexConstant(ImplicitLocOpBuilder &b, int64_t value);

/// Arithmetic on elements.
Value add(ImplicitLocOpBuilder &b, Value x, Value y);
Value sub(ImplicitLocOpBuilder &b, Value x, Value y);
Value mul(ImplicitLocOpBuilder &b, Value x, Value y);
Value div(ImplicitLocOpBuilder &b, Value x, Value y);
Value neg(ImplicitLocOpBuilder &b, Value x);
/// `condition ? x : y`.
Value select(ImplicitLocOpBuilder &b, Value condition, Value x, Value y);

/// 1 or 0, as a float of type `type`.
Value oneIf(ImplicitLocOpBuilder &b, Value condition, Type type);

/// Whether a label asks for a loss: those below zero are ignored.
Value isValid(ImplicitLocOpBuilder &b, Value label);

/// A float as another float type: itself if it already is.
Value converted(ImplicitLocOpBuilder &b, Value value, Type type);

/// A tensor filled with one value.
Value filled(ImplicitLocOpBuilder &b, const Output &output, Value value);

/// Computes results element by element: every output names all `loops` loops.
SmallVector<Value> mapMany(ImplicitLocOpBuilder &b, unsigned loops,
                           ArrayRef<Access> inputs, ArrayRef<Output> outputs,
                           MultiBody body);
Value map(ImplicitLocOpBuilder &b, unsigned loops, ArrayRef<Access> inputs,
          const Output &output, Body body);

/// Combines terms over the loops that the outputs do not name; all outputs name
/// the same loops. Terms are of the outputs' element types, floats or i64.
SmallVector<Value> reduceMany(ImplicitLocOpBuilder &b, unsigned loops,
                              ArrayRef<Access> inputs, ArrayRef<Output> outputs,
                              Combine combine, MultiBody body);
Value reduce(ImplicitLocOpBuilder &b, unsigned loops, ArrayRef<Access> inputs,
             const Output &output, Combine combine, Body body);

/// Sum of products over the loops that the output does not name, as
/// `linalg.contract`. Whoever runs it accumulates in at least f32.
Value contract(ImplicitLocOpBuilder &b, unsigned loops, const Access &lhs,
               const Access &rhs, const Output &output);

/// Sum over all dimensions of `tensor` but the last, with elements of type
/// `element`, at least as wide as its own (as `contract`, to be accumulated in
/// at least f32).
Value sumToLast(ImplicitLocOpBuilder &b, Value tensor, Type element);

/// `value` stored as `element`: itself if it already is.
Value storedAs(ImplicitLocOpBuilder &b, Value value, Type element);

} // namespace mlir::nn

#endif // PARC_DIALECTS_NN_NNBUILDERS_H
