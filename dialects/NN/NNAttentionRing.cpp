//===- NNAttentionRing.cpp - Attention with keys that pass by -------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The transfers, the blocks and how their results join.
///
//===----------------------------------------------------------------------===//

#include "NN/NNAttentionRing.h"
#include "NN/NNVerify.h"
#include "Parc/Parc.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::parc;

RingAttention::RingAttention(ImplicitLocOpBuilder &b, const AttentionView &view,
                             int64_t members)
    : b(b), view(view), members(members) {}

static Value plus(ImplicitLocOpBuilder &b, Value x, int64_t y) {
  return arith::AddIOp::create(b, x, indexConstant(b, y));
}

static Value asIndex(ImplicitLocOpBuilder &b, Value integer) {
  return arith::IndexCastOp::create(b, b.getIndexType(), integer);
}

/// `start` (null: 0), further by `by` (null: 0).
static Value moved(ImplicitLocOpBuilder &b, Value start, Value by) {
  return start && by ? arith::AddIOp::create(b, start, by).getResult()
         : start     ? start
                     : by;
}

/// The number in a tensor of rank 0.
static Value numberIn(ImplicitLocOpBuilder &b, Value tensor) {
  return tensor::ExtractOp::create(b, tensor, ValueRange());
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

Value RingAttention::passed(Value value, int64_t hops) {
  return ShiftOp::create(
      b, value.getType(), value, b.getI64IntegerAttr(1),
      b.getI64IntegerAttr((*view.ringOf)[0]),
      b.getI64IntegerAttr((*view.ringOf)[1]), b.getI64IntegerAttr(hops),
      view.ring,
      WhyAttr::get(b.getContext(),
                   "attention meets the keys of every rank, one "
                   "rank's after the other"));
}

Value RingAttention::gathered(Value part) {
  if (members < 2)
    return part;
  auto type = cast<RankedTensorType>(part.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[1] = (*view.ringOf)[0];
  return AllGatherOp::create(
      b, RankedTensorType::get(shape, type.getElementType()), part,
      b.getI64IntegerAttr(1), b.getI64IntegerAttr((*view.ringOf)[0]),
      b.getI64IntegerAttr((*view.ringOf)[1]), view.ring, b.getArrayAttr({}),
      WhyAttr::get(b.getContext(), "attention reads the keys of every rank"));
}

Value RingAttention::scattered(Value sum, Type type) {
  if (members < 2)
    return sum;
  return ReduceScatterOp::create(
      b, type, ReductionKindAttr::get(b.getContext(), ReductionKind::Sum), sum,
      b.getI64IntegerAttr(1), b.getI64IntegerAttr((*view.ringOf)[0]),
      b.getI64IntegerAttr((*view.ringOf)[1]), view.ring, b.getArrayAttr({}),
      WhyAttr::get(b.getContext(), "every rank's queries read these keys"));
}

/// Where the keys that are here after `hops` transfers begin among all: those
/// of coordinate i - hops.
Value RingAttention::startAfter(int64_t hops) {
  int64_t extent = (*view.ringOf)[0], grain = (*view.ringOf)[1];
  // With one unit a part, a part starts at its own number.
  Value part =
      PartStartOp::create(b, b.getIndexType(), view.ring,
                          b.getI64IntegerAttr(members), b.getI64IntegerAttr(1));
  if (hops > 0)
    part = arith::RemUIOp::create(b, plus(b, part, members - hops),
                                  indexConstant(b, members));
  Value units = indexConstant(b, extent / grain);
  Value product = arith::MulIOp::create(b, part, units);
  return arith::MulIOp::create(
      b, arith::DivUIOp::create(b, product, indexConstant(b, members)),
      indexConstant(b, grain));
}

/// The positions of `size` keys from `start`.
Value RingAttention::positionsFrom(Value start, OpFoldResult size) {
  Sizes sizes = dimSizes(b, view.keyPositions);
  sizes[1] = size;
  SmallVector<OpFoldResult> offsets{b.getIndexAttr(0), start};
  SmallVector<OpFoldResult> strides(2, b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, view.keyPositions, offsets, sizes,
                                        strides);
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// The range of `own` positions that see any of `others`, or are seen; at least
/// one, so that no kernel is empty.
RingAttention::Range RingAttention::meeting(Value own, Value others,
                                            bool ownAreKeys) {
  if (!view.causal && !view.window)
    return {};
  Type integer = b.getI64Type();
  auto extreme = [&](Combine combine) {
    return reduce(b, 2, Access{others, Loops{0, 1}},
                  Output{Loops{0}, Sizes{dimSize(b, others, 0)}, integer},
                  combine,
                  [](ImplicitLocOpBuilder &, ValueRange x) { return x[0]; });
  };
  // Of keys, those not later than the latest query and less than the window
  // before the earliest; of queries, the reverse.
  SmallVector<Access> inputs{Access{own, Loops{0, 1}}};
  if (view.causal)
    inputs.push_back(
        Access{extreme(ownAreKeys ? Combine::Max : Combine::Min), Loops{0}});
  if (view.window)
    inputs.push_back(
        Access{extreme(ownAreKeys ? Combine::Min : Combine::Max), Loops{0}});
  auto end = [&](Combine combine, uint64_t none) {
    auto body = [&](ImplicitLocOpBuilder &nested, ValueRange x) -> Value {
      Value sees;
      if (view.causal)
        sees = arith::CmpIOp::create(nested, arith::CmpIPredicate::sle,
                                     ownAreKeys ? x[0] : x[1],
                                     ownAreKeys ? x[1] : x[0]);
      if (view.window) {
        Value other = x.back();
        Value age = arith::SubIOp::create(nested, ownAreKeys ? other : x[0],
                                          ownAreKeys ? x[0] : other);
        Value near =
            arith::CmpIOp::create(nested, arith::CmpIPredicate::slt, age,
                                  integerConstant(nested, *view.window));
        sees =
            sees ? arith::AndIOp::create(nested, sees, near).getResult() : near;
      }
      Value at = arith::IndexCastOp::create(
          nested, integer, linalg::IndexOp::create(nested, 1).getResult());
      return select(nested, sees, at, integerConstant(nested, none));
    };
    Value found =
        reduce(b, 2, inputs, Output{Loops(), Sizes(), integer}, combine, body);
    return asIndex(b, numberIn(b, found));
  };
  Value first = end(Combine::Min, ~0ull >> 1);
  Value last = end(Combine::Max, 0);
  Value size = indexValue(b, dimSize(b, own, 1));
  Value start = arith::MinSIOp::create(b, first, plus(b, size, -1));
  Value count = plus(b, arith::SubIOp::create(b, last, start), 1);
  return {start, arith::MaxSIOp::create(b, count, indexConstant(b, 1))};
}

Value RingAttention::cut(Value tensor, int64_t dim, const Range &range) {
  if (!range.size)
    return tensor;
  Sizes sizes = dimSizes(b, tensor);
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  offsets[dim] = range.start;
  sizes[dim] = range.size;
  return tensor::ExtractSliceOp::create(b, tensor, offsets, sizes, strides);
}

/// The reverse of cut: `fill` where nothing was.
Value RingAttention::placed(Value tensor, int64_t dim, const Range &range,
                            OpFoldResult size, Value fill) {
  if (!range.size)
    return tensor;
  Sizes sizes = dimSizes(b, tensor);
  sizes[dim] = size;
  auto rank = static_cast<unsigned>(sizes.size());
  auto body = [&](ImplicitLocOpBuilder &nested, ValueRange) -> Value {
    SmallVector<Value> at;
    for (unsigned loop = 0; loop < rank; ++loop)
      at.push_back(linalg::IndexOp::create(nested, loop));
    Value from = arith::SubIOp::create(nested, at[dim], range.start);
    Value inside = arith::CmpIOp::create(nested, arith::CmpIPredicate::ult,
                                         from, range.size);
    at[dim] = select(nested, inside, from, indexConstant(nested, 0));
    Value element = tensor::ExtractOp::create(nested, tensor, at);
    return select(nested, inside, element, fill);
  };
  return map(b, rank, ArrayRef<Access>(),
             {loopRange(0, rank), sizes, tensorType(tensor).getElementType()},
             body);
}

Value RingAttention::zero(Value like) {
  return floatConstant(b, tensorType(like).getElementType(), 0);
}

RingAttention::Block RingAttention::makeBlock(int64_t hops, Value key,
                                              Value value) {
  Block block{view, {}, {}, dimSize(b, view.query, 1), dimSize(b, key, 1)};
  AttentionView &part = block.view;
  part.key = key;
  part.value = value;
  part.keyStart = startAfter(hops);
  part.keyPositions = positionsFrom(part.keyStart, block.keySize);
  // A rank's own keys and queries meet at both ends.
  if (hops > 0) {
    block.keys = meeting(part.keyPositions, part.queryPositions, true);
    block.queries = meeting(part.queryPositions, part.keyPositions, false);
  }
  part.query = cut(part.query, 1, block.queries);
  part.queryPositions = cut(part.queryPositions, 1, block.queries);
  part.key = cut(part.key, 1, block.keys);
  part.value = cut(part.value, 1, block.keys);
  part.keyPositions = cut(part.keyPositions, 1, block.keys);
  part.queryStart = moved(b, part.queryStart, block.queries.start);
  part.keyStart = moved(b, part.keyStart, block.keys.start);
  return block;
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

/// Row statistics are `B x G x R x S`; the sums' accesses name these as loops 0
/// to 3 of their own.
RingAttention::State RingAttention::join(const State &x, const State &y) {
  Output rows{loopRange(0, 4), dimSizes(b, x.maxima),
              tensorType(x.maxima).getElementType()};
  // exp(m - max), and 1 where that is the same: minus infinity for both.
  auto scales = [](ImplicitLocOpBuilder &nested, ValueRange m) {
    Value top = arith::MaximumFOp::create(nested, m[0], m[1]);
    SmallVector<Value> values{top};
    for (Value own : m) {
      Value same =
          arith::CmpFOp::create(nested, arith::CmpFPredicate::OEQ, own, top);
      Value power = math::ExpOp::create(nested, sub(nested, own, top));
      values.push_back(
          select(nested, same, floatConstant(nested, own.getType(), 1), power));
    }
    return values;
  };
  SmallVector<Value> made =
      mapMany(b, 4, {{x.maxima, rows.loops}, {y.maxima, rows.loops}},
              {rows, rows, rows}, scales);
  State result{made[0], {}};
  for (auto [own, other] : llvm::zip_equal(x.sums, y.sums)) {
    auto rank = static_cast<unsigned>(own.loops.size());
    Sizes sizes = dimSizes(b, own.tensor);
    Value sum = map(
        b, rank,
        {own, other, Access{made[1], rows.loops}, Access{made[2], rows.loops}},
        Output{own.loops, sizes, rows.element},
        [](ImplicitLocOpBuilder &nested, ValueRange v) {
          return add(nested, mul(nested, v[0], v[2]), mul(nested, v[1], v[3]));
        });
    result.sums.push_back(Access{sum, own.loops});
  }
  return result;
}

/// The state of one block: the sums of exponentials, and of values weighed by
/// them (`B x S x G x R x E`).
RingAttention::State RingAttention::attend(const Block &block) {
  AttentionView part = block.view;
  repeatKeyHeads(b, part);
  AttentionSpace space(b, part);
  Value products = space.products(space.splitHeads(part.query));
  Value maxima = space.rowMaxima(products);
  Value powers = space.exponentials(products, maxima);
  Value sums = space.rowSums(powers);
  Value context = contract(b, 6, space.scores(space.dropped(powers)),
                           space.keys(part.value),
                           space.queryOutput(part.value, space.compute));
  const Range &range = block.queries;
  OpFoldResult size = block.querySize;
  return {placed(maxima, 3, range, size, bottomConstant(b, space.compute)),
          {Access{placed(sums, 3, range, size, zero(sums)), Loops{0, 1, 2, 3}},
           Access{placed(context, 1, range, size, zero(context)),
                  Loops{0, 3, 1, 2, 4}}}};
}

Value RingAttention::forward(Type type) {
  Value key = view.key, value = view.value;
  State state = attend(makeBlock(0, key, value));
  for (int64_t hops = 1; hops < members; ++hops) {
    key = passed(key, hops - 1);
    value = passed(value, hops - 1);
    state = join(state, attend(makeBlock(hops, key, value)));
  }
  AttentionSpace space(b, view);
  Value context = state.sums[1].tensor;
  Loops all = loopRange(0, 5);
  Value result =
      map(b, 5, {{context, all}, {state.sums[0].tensor, {0, 2, 3, 1}}},
          {all, dimSizes(b, context), space.element},
          [](ImplicitLocOpBuilder &nested, ValueRange x) {
            return div(nested, x[0], x[1]);
          });
  return space.joinHeads(result, type);
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

/// The state of one block: the sums of exponentials, and of the gradients for
/// the probabilities weighed by them.
RingAttention::State RingAttention::measure(const Block &block, Value grad) {
  AttentionView part = block.view;
  repeatKeyHeads(b, part);
  AttentionSpace space(b, part);
  Value products = space.products(space.splitHeads(part.query));
  Value maxima = space.rowMaxima(products);
  Value powers = space.exponentials(products, maxima);
  Value sums = space.rowSums(powers);
  Value slopes = contract(
      b, 6, space.queries(space.splitHeads(cut(grad, 1, block.queries))),
      space.keys(part.value), space.scoreOutput(space.compute));
  Value weighed = space.rowDots(space.dropped(powers), slopes);
  const Range &range = block.queries;
  OpFoldResult size = block.querySize;
  return {placed(maxima, 3, range, size, bottomConstant(b, space.compute)),
          {Access{placed(sums, 3, range, size, zero(sums)), Loops{0, 1, 2, 3}},
           Access{placed(weighed, 3, range, size, zero(weighed)),
                  Loops{0, 1, 2, 3}}}};
}

/// With P the probabilities under the rows' final statistics, D what dropout
/// leaves of them and dD the gradient for D, `(D dD - P delta) scale` is the
/// gradient for the products. Returns the gradients for query, key and value,
/// in the type that is computed in.
SmallVector<Value> RingAttention::gradients(const Block &block, Value grad,
                                            const State &total, Value deltas) {
  AttentionView part = block.view;
  repeatKeyHeads(b, part);
  AttentionSpace space(b, part);
  auto rows = [&](Value value) { return cut(value, 3, block.queries); };
  Value query = space.splitHeads(part.query);
  Value ownGrad = space.splitHeads(cut(grad, 1, block.queries));
  Value powers = space.exponentials(space.products(query), rows(total.maxima));
  Value slopes = contract(b, 6, space.queries(ownGrad), space.keys(part.value),
                          space.scoreOutput(space.compute));
  Output scores = space.scoreOutput(space.element);
  auto body = [&](ImplicitLocOpBuilder &nested, ValueRange x) {
    Value whole = div(nested, x[0], x[2]);
    Value kept = space.dropped(nested, whole);
    Value slope =
        sub(nested, mul(nested, kept, x[1]), mul(nested, whole, x[3]));
    Value scale = floatConstant(nested, space.compute, part.scale);
    return SmallVector<Value>{kept, mul(nested, slope, scale)};
  };
  SmallVector<Value> made = mapMany(b, 5,
                                    {space.scores(powers), space.scores(slopes),
                                     space.rows(rows(total.sums[0].tensor)),
                                     space.rows(rows(deltas))},
                                    {scores, scores}, body);
  Value queryGrad = contract(b, 6, space.scores(made[1]), space.keys(part.key),
                             space.queryOutput(part.query, space.compute));
  Value keyGrad = contract(b, 6, space.scores(made[1]), space.queries(query),
                           space.keyOutput(part.key, space.compute));
  Value valueGrad =
      contract(b, 6, space.scores(made[0]), space.queries(ownGrad),
               space.keyOutput(part.value, space.compute));
  auto placedKeys = [&](Value sum, Value like) {
    sum = sumKeyHeads(b, part, sum, like);
    return placed(sum, 1, block.keys, block.keySize, zero(sum));
  };
  return {placed(queryGrad, 1, block.queries, block.querySize, zero(queryGrad)),
          placedKeys(keyGrad, block.view.key),
          placedKeys(valueGrad, block.view.value)};
}

Value RingAttention::added(Value x, Value y) {
  if (!x)
    return y;
  auto rank = static_cast<unsigned>(tensorType(x).getRank());
  Loops all = loopRange(0, rank);
  return map(b, rank, {{x, all}, {y, all}},
             {all, dimSizes(b, x), tensorType(x).getElementType()},
             [](ImplicitLocOpBuilder &nested, ValueRange v) {
               return add(nested, v[0], v[1]);
             });
}

SmallVector<Value> RingAttention::backward(Value grad, TypeRange types) {
  std::vector<Block> blocks;
  Value key = view.key, value = view.value;
  State total;
  for (int64_t hops = 0; hops < members; ++hops) {
    if (hops > 0) {
      key = passed(key, hops - 1);
      value = passed(value, hops - 1);
    }
    blocks.push_back(makeBlock(hops, key, value));
    State state = measure(blocks.back(), grad);
    total = hops ? join(total, state) : state;
  }
  Loops rows = loopRange(0, 4);
  Value sums = total.sums[0].tensor;
  Value deltas =
      map(b, 4, {{total.sums[1].tensor, rows}, {sums, rows}},
          {rows, dimSizes(b, sums), tensorType(sums).getElementType()},
          [](ImplicitLocOpBuilder &nested, ValueRange x) {
            return div(nested, x[0], x[1]);
          });
  // The gradients of another rank's keys begin at its neighbour's and come home
  // with the last transfer; those of the own keys never leave.
  SmallVector<Value> own = gradients(blocks[0], grad, total, deltas);
  Value keyGrad, valueGrad;
  for (int64_t hops = 1; hops < members; ++hops) {
    SmallVector<Value> part = gradients(blocks[hops], grad, total, deltas);
    own[0] = added(own[0], part[0]);
    keyGrad = added(keyGrad, part[1]);
    valueGrad = added(valueGrad, part[2]);
    keyGrad = passed(keyGrad, hops);
    valueGrad = passed(valueGrad, hops);
  }
  if (keyGrad) {
    own[1] = added(own[1], keyGrad);
    own[2] = added(own[2], valueGrad);
  }
  AttentionSpace space(b, view);
  return {space.joinHeads(storedAs(b, own[0], space.element), types[0]),
          storedAs(b, own[1], space.element),
          storedAs(b, own[2], space.element)};
}
