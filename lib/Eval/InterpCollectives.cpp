//===- InterpCollectives.cpp - Collectives and slices ---------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Collectives over the rank's communicators. Parts are packed one after the
/// other, in the order of the members, so that any dimension can be split.
///
//===----------------------------------------------------------------------===//

#include "Plan.h"

#include "Parc/Parc.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::eval;

namespace {

/// How one dimension is split over the members of a collective.
struct Split {
  int64_t dim = 0;
  /// The whole that the members hold, and each member's part of it, by its
  /// start relative to that whole.
  int64_t whole = 0;
  std::vector<Part> parts;
};

} // namespace

/// The split of `extent` over `axes`, below `outer`: member j has part
/// outer * P + j of all, and the whole is the outer part.
static FailureOr<Split> makeSplit(Operation *op, const RankContext &rank,
                                  int64_t dim, int64_t extent, int64_t grain,
                                  ArrayAttr axes, ArrayAttr outer,
                                  int64_t tensorRank) {
  if (dim < 0 || dim >= tensorRank)
    return op->emitOpError() << "splits dimension " << dim
                             << " of a tensor of rank " << tensorRank;
  if (grain < 1 || extent < 0 || extent % grain)
    return op->emitOpError() << "expected an extent that is a multiple of its "
                                "grain, got "
                             << extent << " and " << grain;
  Position above = rank.linear(outer), members = rank.linear(axes);
  Part whole = partOf(extent, grain, above);
  Split split;
  split.dim = dim;
  split.whole = whole.size;
  for (int64_t member = 0; member < members.size; ++member) {
    Part part = partOf(
        extent, grain,
        {above.coordinate * members.size + member, above.size * members.size});
    split.parts.push_back({part.start - whole.start, part.size});
  }
  return split;
}

/// The extent, a number of the op or a value.
template <class T, class Op>
static int64_t extentOf(Interpreter<T> &interpreter, Op op) {
  return op.getSize() ? interpreter.tensor(op.getSize()).ints()[0]
                      : int64_t(op.getExtent());
}

/// The box of one part in a tensor of `shape`.
static Box boxOf(const Split &split, const Part &part,
                 ArrayRef<int64_t> shape) {
  Box box{Shape(shape.size(), 0), Shape(shape), {}};
  box.offsets[split.dim] = part.start;
  box.sizes[split.dim] = part.size;
  return box;
}

static LogicalResult checkSize(Operation *op, const Split &split,
                               ArrayRef<int64_t> shape, int64_t expected) {
  if (shape[split.dim] == expected)
    return success();
  return op->emitOpError() << "expected size " << expected << " of dimension "
                           << split.dim << ", got " << shape[split.dim];
}

/// A rank that stops because another one failed says nothing: that one did.
static LogicalResult toResult(Operation *op, const ::parc::Status &status) {
  if (status.ok())
    return success();
  if (status.code() == ::parc::Code::Stopped ||
      status.code() == ::parc::Code::RankFailed)
    return failure();
  return op->emitOpError() << "failed: " << status.text();
}

static ::parc::ReduceOp reduceOp(ReductionKind kind) {
  return kind == ReductionKind::Sum   ? ::parc::ReduceOp::sum
         : kind == ReductionKind::Max ? ::parc::ReduceOp::max
                                      : ::parc::ReduceOp::min;
}

template <class T> static ::parc::DType dtypeOf(const Tensor<T> &tensor) {
  return tensor.isInt() ? ::parc::DType::i64 : ::parc::DTypeOf<T>::value;
}

/// Tensors are moved as bytes: the pointer to their elements.
template <class T> static const void *bytesOf(const Tensor<T> &tensor) {
  return tensor.isInt() ? static_cast<const void *>(tensor.ints())
                        : static_cast<const void *>(tensor.floats());
}
template <class T> static void *mutableBytesOf(Tensor<T> &tensor) {
  return tensor.isInt() ? static_cast<void *>(tensor.mutableInts())
                        : static_cast<void *>(tensor.mutableFloats());
}

/// The communicator of a collective with `expected` members, this rank at
/// `index` among them.
static FailureOr<::parc::Communicator *>
findGroup(Operation *op, const RankContext &rank, ArrayAttr axes,
          std::optional<ArrayRef<int64_t>> stages, int64_t expected) {
  ::parc::Communicator *group =
      rank.findCommunicator ? rank.findCommunicator(axes, stages) : nullptr;
  if (!group)
    return op->emitOpError() << "needs other ranks over " << axes
                             << "; this program is run by one rank alone";
  if (group->size() != expected)
    return op->emitOpError() << "expected " << expected << " ranks over "
                             << axes << ", got " << group->size();
  return group;
}

namespace {

/// What all collectives that move parts of dimensions share: this rank's
/// number among the members, and the members' communicator.
struct Members {
  int64_t self = 0, count = 1;
  /// Null where the rank is alone, so that nothing moves.
  ::parc::Communicator *group = nullptr;
};

} // namespace

/// The split that a gather, a scatter or a slice names.
template <class T, class OpT>
static FailureOr<Split> splitOf(Interpreter<T> &interpreter, OpT op,
                                int64_t tensorRank) {
  return makeSplit(op, interpreter.rank, op.getDim(), extentOf(interpreter, op),
                   op.getGrain(), op.getAxes(), op.getOuter(), tensorRank);
}

static FailureOr<Members> findMembers(Operation *op, const RankContext &rank,
                                      ArrayAttr axes) {
  Position position = rank.linear(axes);
  Members members{position.coordinate, position.size, nullptr};
  if (members.count == 1)
    return members;
  auto group = findGroup(op, rank, axes, std::nullopt, members.count);
  if (failed(group))
    return failure();
  members.group = *group;
  return members;
}

/// A shape with another size of one dimension.
static Shape resized(ArrayRef<int64_t> shape, int64_t dim, int64_t size) {
  Shape result(shape);
  result[dim] = size;
  return result;
}

//===----------------------------------------------------------------------===//
// Parts in the order of members
//===----------------------------------------------------------------------===//

/// All parts of `tensor` one after the other.
template <class T>
static Tensor<T> pack(const Tensor<T> &tensor, const Split &split) {
  if (split.dim == 0)
    return tensor.reshaped({tensor.size()});
  Tensor<T> packed = Tensor<T>::zeros({tensor.size()}, tensor.isInt());
  int64_t at = 0;
  for (const Part &part : split.parts) {
    Tensor<T> piece = extractBox(tensor, boxOf(split, part, tensor.shape()));
    insertBox(packed, piece, Box{{at}, {piece.size()}, {}});
    at += piece.size();
  }
  return packed;
}

/// The reverse of pack, for a result of `shape`.
template <class T>
static Tensor<T> unpack(const Tensor<T> &packed, const Split &split,
                        ArrayRef<int64_t> shape) {
  if (split.dim == 0)
    return packed.reshaped(shape);
  Tensor<T> result = Tensor<T>::zeros(shape, packed.isInt());
  int64_t at = 0;
  for (const Part &part : split.parts) {
    Box box = boxOf(split, part, shape);
    int64_t count = elementCount(box.sizes);
    insertBox(result, extractBox(packed, Box{{at}, {count}, {}}), box);
    at += count;
  }
  return result;
}

/// Elements of each part of a tensor of `shape`.
static std::vector<int64_t> countsOf(const Split &split,
                                     ArrayRef<int64_t> shape) {
  std::vector<int64_t> counts;
  for (const Part &part : split.parts)
    counts.push_back(elementCount(boxOf(split, part, shape).sizes));
  return counts;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

template <class T>
static LogicalResult runAllReduce(Interpreter<T> &interpreter,
                                  const OpPlan<T> &plan) {
  auto op = cast<AllReduceOp>(plan.op);
  int64_t members = 1;
  for (auto axis : op.getAxes().template getAsRange<StringAttr>())
    members *= axis.getValue() == kStageAxis && op.getStages()
                   ? int64_t(op.getStages()->size())
                   : interpreter.rank.axis(axis.getValue()).size;
  Tensor<T> value = interpreter.take(plan, op.getInputMutable());
  if (members == 1)
    return interpreter.set(op.getResult(), std::move(value));
  auto group =
      findGroup(op, interpreter.rank, op.getAxes(), op.getStages(), members);
  if (failed(group))
    return failure();
  void *data = mutableBytesOf(value);
  if (failed(toResult(
          op, (*group)->allReduce(data, data, value.size(), dtypeOf(value),
                                  reduceOp(op.getKind()), op.getWhy().data()))))
    return failure();
  return interpreter.set(op.getResult(), std::move(value));
}

template <class T>
static LogicalResult runAllGather(Interpreter<T> &interpreter,
                                  const OpPlan<T> &plan) {
  auto op = cast<AllGatherOp>(plan.op);
  const Tensor<T> &input = interpreter.tensor(op.getInput());
  auto split = splitOf(interpreter, op, input.rank());
  auto members = findMembers(op, interpreter.rank, op.getAxes());
  if (failed(split) || failed(members) ||
      failed(checkSize(op, *split, input.shape(),
                       split->parts[members->self].size)))
    return failure();
  if (!members->group)
    return interpreter.set(op.getResult(), input);
  Shape shape = resized(input.shape(), split->dim, split->whole);
  Tensor<T> packed = Tensor<T>::zeros({elementCount(shape)}, input.isInt());
  std::vector<int64_t> counts = countsOf(*split, shape);
  if (failed(toResult(
          op, members->group->allGather(bytesOf(input), mutableBytesOf(packed),
                                        counts.data(), dtypeOf(input),
                                        op.getWhy().data()))))
    return failure();
  return interpreter.set(op.getResult(), unpack(packed, *split, shape));
}

template <class T>
static LogicalResult runReduceScatter(Interpreter<T> &interpreter,
                                      const OpPlan<T> &plan) {
  auto op = cast<ReduceScatterOp>(plan.op);
  const Tensor<T> &input = interpreter.tensor(op.getInput());
  auto split = splitOf(interpreter, op, input.rank());
  auto members = findMembers(op, interpreter.rank, op.getAxes());
  if (failed(split) || failed(members) ||
      failed(checkSize(op, *split, input.shape(), split->whole)))
    return failure();
  if (!members->group)
    return interpreter.set(op.getResult(), input);
  Tensor<T> packed = pack(input, *split);
  Tensor<T> result = Tensor<T>::zeros(
      resized(input.shape(), split->dim, split->parts[members->self].size),
      input.isInt());
  std::vector<int64_t> counts = countsOf(*split, input.shape());
  if (failed(toResult(op, members->group->reduceScatter(
                              bytesOf(packed), mutableBytesOf(result),
                              counts.data(), dtypeOf(input),
                              reduceOp(op.getKind()), op.getWhy().data()))))
    return failure();
  return interpreter.set(op.getResult(), std::move(result));
}

/// The boxes of what a member gets or gives of a tensor of `shape`: of its part
/// on `split.dim` the first rows of each index of dimension 0, as many as
/// `used` says.
template <class T>
static FailureOr<std::vector<Box>>
boxesOf(Operation *op, const Split &split, int64_t member,
        ArrayRef<int64_t> shape, const Tensor<T> &used) {
  Box whole = boxOf(split, split.parts[member], shape);
  int64_t columns = split.dim == 0 ? 1 : int64_t(split.parts.size());
  if (used.rank() != 2 || used.shape()[0] != shape[0] ||
      used.shape()[1] != columns)
    return op->emitOpError()
           << "expected " << shape[0] << " x " << columns << " numbers of rows";
  std::vector<Box> boxes;
  for (int64_t index = 0; index < whole.sizes[0]; ++index) {
    Box box = whole;
    box.offsets[0] += index;
    box.sizes[0] = 1;
    int64_t column = split.dim == 0 ? 0 : member;
    box.sizes[1] = used.ints()[box.offsets[0] * columns + column];
    if (box.sizes[1] < 0 || box.sizes[1] > whole.sizes[1])
      return op->emitOpError() << "expected at most " << whole.sizes[1]
                               << " rows, got " << box.sizes[1];
    boxes.push_back(std::move(box));
  }
  return boxes;
}

namespace {

/// What an exchange of rows moves: the boxes of all members, one after the
/// other, and the elements of each member.
struct RowBoxes {
  std::vector<Box> boxes;
  std::vector<int64_t> counts;
  int64_t total = 0;
};

} // namespace

template <class T>
static FailureOr<RowBoxes> rowBoxes(Operation *op, const Split &split,
                                    ArrayRef<int64_t> shape,
                                    const Tensor<T> &used) {
  RowBoxes all;
  for (int64_t member = 0; member < int64_t(split.parts.size()); ++member) {
    auto boxes = boxesOf(op, split, member, shape, used);
    if (failed(boxes))
      return failure();
    int64_t count = 0;
    for (Box &box : *boxes) {
      count += elementCount(box.sizes);
      all.boxes.push_back(std::move(box));
    }
    all.counts.push_back(count);
    all.total += count;
  }
  return all;
}

/// An exchange of the rows that are used: the others arrive as zero.
template <class T>
static LogicalResult exchangeRows(Interpreter<T> &interpreter, AllToAllOp op,
                                  const Split &gather, const Split &split,
                                  ::parc::Communicator *group,
                                  ArrayRef<int64_t> shape) {
  const Tensor<T> &input = interpreter.tensor(op.getInput());
  auto sent =
      rowBoxes(op, split, input.shape(), interpreter.tensor(op.getUsed()[0]));
  auto received =
      rowBoxes(op, gather, shape, interpreter.tensor(op.getUsed()[1]));
  if (failed(sent) || failed(received))
    return failure();
  Tensor<T> out = Tensor<T>::zeros({sent->total}, input.isInt());
  Tensor<T> in = Tensor<T>::zeros({received->total}, input.isInt());
  int64_t at = 0;
  for (const Box &box : sent->boxes) {
    int64_t count = elementCount(box.sizes);
    insertBox(out, extractBox(input, box), Box{{at}, {count}, {}});
    at += count;
  }
  if (failed(toResult(op, group->allToAll(bytesOf(out), sent->counts.data(),
                                          mutableBytesOf(in),
                                          received->counts.data(),
                                          dtypeOf(input), op.getWhy().data()))))
    return failure();
  Tensor<T> result = Tensor<T>::zeros(shape, input.isInt());
  at = 0;
  for (const Box &box : received->boxes) {
    int64_t count = elementCount(box.sizes);
    insertBox(result, extractBox(in, Box{{at}, {count}, {}}), box);
    at += count;
  }
  return interpreter.set(op.getResult(), std::move(result));
}

template <class T>
static LogicalResult runAllToAll(Interpreter<T> &interpreter,
                                 const OpPlan<T> &plan) {
  auto op = cast<AllToAllOp>(plan.op);
  const Tensor<T> &input = interpreter.tensor(op.getInput());
  RankContext &rank = interpreter.rank;
  auto gather = makeSplit(op, rank, op.getGatherDim(), op.getGatherExtent(),
                          op.getGatherGrain(), op.getAxes(),
                          op.getGatherOuter(), input.rank());
  auto split = makeSplit(op, rank, op.getSplitDim(), op.getSplitExtent(),
                         op.getSplitGrain(), op.getAxes(), op.getSplitOuter(),
                         input.rank());
  auto members = findMembers(op, rank, op.getAxes());
  if (failed(gather) || failed(split) || failed(members) ||
      failed(checkSize(op, *gather, input.shape(),
                       gather->parts[members->self].size)) ||
      failed(checkSize(op, *split, input.shape(), split->whole)))
    return failure();
  if (!members->group)
    return interpreter.set(op.getResult(), input);
  Shape shape = resized(
      resized(input.shape(), split->dim, split->parts[members->self].size),
      gather->dim, gather->whole);
  if (!op.getUsed().empty())
    return exchangeRows(interpreter, op, *gather, *split, members->group,
                        shape);
  Tensor<T> sent = pack(input, *split);
  Tensor<T> received = Tensor<T>::zeros({elementCount(shape)}, input.isInt());
  std::vector<int64_t> sendCounts = countsOf(*split, input.shape());
  std::vector<int64_t> receiveCounts = countsOf(*gather, shape);
  if (failed(toResult(op, members->group->allToAll(
                              bytesOf(sent), sendCounts.data(),
                              mutableBytesOf(received), receiveCounts.data(),
                              dtypeOf(input), op.getWhy().data()))))
    return failure();
  return interpreter.set(op.getResult(), unpack(received, *gather, shape));
}

/// An exchange in which each member sends to the next one only.
template <class T>
static LogicalResult runShift(Interpreter<T> &interpreter,
                              const OpPlan<T> &plan) {
  auto op = cast<ShiftOp>(plan.op);
  const Tensor<T> &input = interpreter.tensor(op.getInput());
  RankContext &rank = interpreter.rank;
  auto split = makeSplit(op, rank, op.getDim(), op.getExtent(), op.getGrain(),
                         op.getAxes(), ArrayAttr::get(op.getContext(), {}),
                         input.rank());
  if (failed(split))
    return failure();
  auto members = int64_t(split->parts.size());
  int64_t self = rank.linear(op.getAxes()).coordinate;
  auto partAfter = [&](int64_t hops) -> const Part & {
    return split->parts[(self + members - hops % members) % members];
  };
  auto hops = int64_t(op.getHops());
  if (failed(checkSize(op, *split, input.shape(), partAfter(hops).size)))
    return failure();
  if (members == 1)
    return interpreter.set(op.getResult(), input);
  auto group = findGroup(op, rank, op.getAxes(), std::nullopt, members);
  if (failed(group))
    return failure();
  Shape shape(input.shape());
  shape[split->dim] = partAfter(hops + 1).size;
  Tensor<T> received = Tensor<T>::zeros(shape, input.isInt());
  std::vector<int64_t> sendCounts(members), receiveCounts(members);
  sendCounts[(self + 1) % members] = input.size();
  receiveCounts[(self + members - 1) % members] = received.size();
  if (failed(toResult(
          op, (*group)->allToAll(bytesOf(input), sendCounts.data(),
                                 mutableBytesOf(received), receiveCounts.data(),
                                 dtypeOf(input), op.getWhy().data()))))
    return failure();
  return interpreter.set(op.getResult(), std::move(received));
}

template <class T>
static LogicalResult runSlice(Interpreter<T> &interpreter,
                              const OpPlan<T> &plan) {
  auto op = cast<SliceOp>(plan.op);
  const Tensor<T> &input = interpreter.tensor(op.getInput());
  auto split = splitOf(interpreter, op, input.rank());
  if (failed(split) ||
      failed(checkSize(op, *split, input.shape(), split->whole)))
    return failure();
  int64_t self = interpreter.rank.linear(op.getAxes()).coordinate;
  return interpreter.set(
      op.getResult(),
      extractBox(input, boxOf(*split, split->parts[self], input.shape())));
}

template <class T>
void mlir::parc::eval::addCollectiveHandlers(HandlerTable<T> &table) {
  table["parc.all_reduce"] = {runAllReduce<T>};
  table["parc.all_gather"] = {runAllGather<T>};
  table["parc.reduce_scatter"] = {runReduceScatter<T>};
  table["parc.all_to_all"] = {runAllToAll<T>};
  table["parc.shift"] = {runShift<T>};
  table["parc.slice"] = {runSlice<T>};
}

#define PARC_INSTANTIATE(T)                                                    \
  template void mlir::parc::eval::addCollectiveHandlers(HandlerTable<T> &);
PARC_EVAL_FOR_EACH_DOMAIN(PARC_INSTANTIATE)
#undef PARC_INSTANTIATE
