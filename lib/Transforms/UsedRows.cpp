//===- UsedRows.cpp - Values of which some rows are used ------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Follows the rows of queues from op to op.
///
//===----------------------------------------------------------------------===//

#include "UsedRows.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "parc/Analysis/OpLayout.h"

using namespace mlir;
using namespace mlir::parc;

/// The layout of the numbers of a value's rows.
static ShardingAttr numbersLayout(ShardingAttr layout) {
  MLIRContext *context = layout.getContext();
  DimShardingAttr parts = layout.getDims()[1];
  return ShardingAttr::get(
      context,
      {layout.getDims()[0], DimShardingAttr::get(context, parts.getAxes(), 1)},
      ReductionKind::Sum, ArrayRef<StringAttr>{});
}

static UsedRows::Numbers makeNumbers(QueueOpInterface op,
                                     const AxisSizes &axes) {
  Value rows = op->getResult(0);
  ShardingAttr layout = numbersLayout(getSharding(rows.getType()));
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  Operation *made =
      op.buildUsedRows(builder, axes.product(layout.getDims()[1].getAxes()));
  Value numbers = made->getResult(0);
  numbers.setType(
      withSharding(cast<RankedTensorType>(numbers.getType()), layout));
  return {numbers, op.getBalancedRows()};
}

/// The first two dimensions, if each is one factor of its own.
static std::optional<std::pair<unsigned, unsigned>>
rowFactors(const ValueFactors &dims) {
  if (dims.size() < 2 || dims[0].size() != 1 || dims[1].size() != 1 ||
      dims[1].cut == DimCut::Set)
    return std::nullopt;
  return std::pair(dims[0].front(), dims[1].front());
}

UsedRows::Numbers UsedRows::find(Value value, const AxisSizes &axes) {
  Operation *op = value.getDefiningOp();
  if (!op || !isa<RankedTensorType>(value.getType()))
    return {};
  if (auto reshard = dyn_cast<ReshardOp>(op))
    return of(reshard.getInput(), axes);
  if (auto queue = dyn_cast<QueueOpInterface>(op);
      queue && value == op->getResult(0)) {
    Numbers numbers = makeNumbers(queue, axes);
    made.push_back(numbers.value.getDefiningOp());
    return numbers;
  }
  const auto *entry = propagation.ops().find(op);
  if (entry == propagation.ops().end())
    return {};
  const OpFactors &factors = entry->second;
  auto rows =
      rowFactors(factors.results[cast<OpResult>(value).getResultNumber()]);
  if (!rows)
    return {};
  auto dest = dyn_cast<DestinationStyleOpInterface>(op);
  for (const auto &set : factors.linear) {
    Numbers common;
    bool all = llvm::all_of(set, [&](unsigned index) {
      OpOperand &operand = op->getOpOperand(index);
      if (dest && dest.isDpsInit(&operand))
        return isZero(operand.get());
      if (rowFactors(factors.operands[index]) != rows)
        return false;
      Numbers mine = of(operand.get(), axes);
      if (!mine.value || (common.value && common.value != mine.value))
        return false;
      common = mine;
      return true;
    });
    if (all && common.value)
      return common;
  }
  return {};
}

UsedRows::Numbers UsedRows::of(Value value, const AxisSizes &axes) {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  Numbers numbers = find(value, axes);
  known[value] = numbers;
  return numbers;
}

void UsedRows::eraseUnread() {
  for (Operation *op : made)
    if (op->use_empty())
      op->erase();
  made.clear();
  known.clear();
}

std::optional<std::pair<ShardingAttr, ShardingAttr>>
UsedRows::layoutsAround(Value numbers, ShardingAttr from, ShardingAttr to,
                        const AxisSizes &axes) {
  ArrayRef<DimShardingAttr> before = from.getDims(), after = to.getDims();
  if (from.getPartial() != to.getPartial() || from.isFlat() || to.isFlat() ||
      before.size() < 2 || before.drop_front(2) != after.drop_front(2))
    return std::nullopt;
  // The axes that dimension 1 has on one side only.
  bool gathers = before[1].getAxes().size() > after[1].getAxes().size();
  ArrayRef<DimShardingAttr> finer = gathers ? before : after,
                            coarser = gathers ? after : before;
  size_t kept = coarser[1].getAxes().size(), rest = finer[0].getAxes().size();
  if (finer[1].getAxes().take_front(kept) != coarser[1].getAxes() ||
      coarser[0].getAxes().take_front(rest) != finer[0].getAxes() ||
      finer[1].getAxes().drop_front(kept) !=
          coarser[0].getAxes().drop_front(rest) ||
      finer[1].getAxes().size() == kept)
    return std::nullopt;
  if (axes.product(finer[1].getAxes()) !=
      cast<RankedTensorType>(numbers.getType()).getDimSize(1))
    return std::nullopt;
  return std::pair(numbersLayout(from), numbersLayout(to));
}
