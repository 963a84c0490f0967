//===- KernelRun.cpp - The loop nest of a kernel --------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Runs a program over its iterations. The innermost loop is one in which each
/// iteration writes its own elements, if there is one; else the instructions
/// that read the outputs run lane after lane. Accumulation into one element
/// always goes through the loops in their written order.
///
//===----------------------------------------------------------------------===//

#include "KernelExecute.h"

#include "mlir/IR/AffineExpr.h"

using namespace mlir;
using namespace mlir::parc::eval;

template <class T>
std::optional<unsigned>
mlir::parc::eval::chooseInnermost(ArrayRef<Access<T>> outputs,
                                  ArrayRef<int64_t> extents,
                                  std::optional<unsigned> except) {
  std::optional<unsigned> best;
  for (unsigned dim = 0; dim < extents.size(); ++dim) {
    bool writesApart = llvm::all_of(outputs, [&](const Access<T> &access) {
      return !access.map && access.strides[dim] != 0;
    });
    if (writesApart && dim != except &&
        (!best || best == except || extents[dim] >= extents[*best]))
      best = dim;
    else if (writesApart && !best)
      best = dim;
  }
  return best;
}

namespace {

/// The value of a non-linear index expression; `dims` are the loops' positions.
/// Division by zero, which affine leaves undefined, gives -1: out of bounds.
int64_t evaluate(AffineExpr expr, ArrayRef<int64_t> dims) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dims[dim.getPosition()];
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return -1;
  int64_t a = evaluate(binary.getLHS(), dims),
          b = evaluate(binary.getRHS(), dims);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return a + b;
  case AffineExprKind::Mul:
    return a * b;
  case AffineExprKind::Mod:
    return b <= 0 ? -1 : ((a % b) + b) % b;
  case AffineExprKind::FloorDiv:
    return b <= 0 ? -1 : (a - (((a % b) + b) % b)) / b;
  case AffineExprKind::CeilDiv:
    return b <= 0 ? -1 : -((-a - (((-a % b) + b) % b)) / b);
  default:
    return -1;
  }
}

template <class T> class Run {
public:
  Run(const Program<T> &program, KernelCall<T> &call)
      : program(program), call(call) {}

  LogicalResult run() {
    if (llvm::is_contained(call.extents, 0))
      return success();
    if (call.extents.empty())
      addUnitLoop();
    collapse();
    order();
    prepareLanes();
    return runLoops();
  }

private:
  MutableArrayRef<Access<T>> outputs() {
    return MutableArrayRef<Access<T>>(call.accesses).drop_front(call.numInputs);
  }

  void addUnitLoop() {
    call.extents.push_back(1);
    for (Access<T> &access : call.accesses)
      access.strides.push_back(0);
    // One iteration cannot collide with another.
    unit = true;
  }

  /// Joins neighbouring loops that are one loop for every operand.
  void collapse() {
    if (!program.indices.empty() ||
        llvm::any_of(call.accesses, [](auto &access) { return access.map; }))
      return;
    for (int64_t dim = int64_t(call.extents.size()) - 2; dim >= 0; --dim) {
      bool joins = llvm::all_of(call.accesses, [&](const Access<T> &access) {
        return access.strides[dim] ==
               access.strides[dim + 1] * call.extents[dim + 1];
      });
      if (!joins)
        continue;
      call.extents[dim] *= call.extents[dim + 1];
      call.extents.erase(call.extents.begin() + dim + 1);
      for (Access<T> &access : call.accesses)
        access.strides.erase(access.strides.begin() + dim);
    }
  }

  void order() {
    std::optional<unsigned> apart = chooseInnermost<T>(
        outputs(), call.extents,
        program.oneHot ? std::optional<unsigned>(program.oneHot->dim)
                       : std::nullopt);
    serial = !apart && !unit;
    inner = apart ? *apart : unsigned(call.extents.size() - 1);
    skips = skipsLoop();
    for (unsigned dim = 0; dim < call.extents.size(); ++dim)
      if (dim != inner && !(skips && dim == program.oneHot->dim))
        outer.push_back(dim);
    auto firstDependent = llvm::find_if(
        program.code, [](const Instruction<T> &in) { return in.dependent; });
    numIndependent = firstDependent - program.code.begin();
  }

  /// True where the one-hot loop can be solved for instead of run: what decides
  /// is the same in all lanes.
  bool skipsLoop() const {
    if (!program.oneHot || serial || unit || program.oneHot->dim == inner ||
        llvm::is_contained(program.oneHot->loops, inner))
      return false;
    return llvm::all_of(program.oneHot->arguments, [&](unsigned index) {
      return !call.accesses[index].map &&
             call.accesses[index].strides[inner] == 0;
    });
  }

  /// Moves to the only iteration of the one-hot loop that adds something; false
  /// where there is none.
  FailureOr<bool> solveOneHot() {
    const auto &hot = *program.oneHot;
    position[hot.dim] = 0;
    loadIndices(1);
    for (unsigned index : hot.arguments)
      if (failed(load(index, 0, 1)))
        return failure();
    if (failed(runCode(0, hot.compare, 0, 1)))
      return failure();
    const Instruction<T> &compare = program.code[hot.compare];
    int64_t a = lanes.intLanes(compare.a)[0], b = lanes.intLanes(compare.b)[0];
    int64_t hit = int64_t(hot.countsInB ? uint64_t(a) - uint64_t(b)
                                        : uint64_t(b) - uint64_t(a));
    if (hit < 0 || hit >= call.extents[hot.dim])
      return false;
    position[hot.dim] = hit;
    return true;
  }

  void prepareLanes() {
    lanes.floats.resize(size_t(program.numFloats) * kLanes);
    lanes.ints.resize(size_t(program.numInts) * kLanes);
    for (auto [reg, value] : program.floatConstants)
      std::fill_n(lanes.floatLanes(reg), kLanes, value);
    for (auto [reg, value] : program.intConstants)
      std::fill_n(lanes.intLanes(reg), kLanes, value);
    for (auto [capture, value] : llvm::zip(program.captures, call.captures)) {
      if (capture.reg.isInt)
        std::fill_n(lanes.intLanes(capture.reg.index), kLanes, value.asInt());
      else
        std::fill_n(lanes.floatLanes(capture.reg.index), kLanes,
                    value.asFloat());
    }
  }

  LogicalResult runLoops() {
    position.assign(call.extents.size(), 0);
    int64_t extent = call.extents[inner];
    while (true) {
      FailureOr<bool> any = true;
      if (skips) {
        any = solveOneHot();
        if (failed(any))
          return failure();
      }
      for (int64_t at = 0; *any && at < extent; at += kLanes) {
        position[inner] = at;
        if (failed(runChunk(std::min(kLanes, extent - at))))
          return failure();
      }
      position[inner] = 0;
      int64_t loop = int64_t(outer.size()) - 1;
      for (; loop >= 0; --loop) {
        unsigned dim = outer[loop];
        if (++position[dim] < call.extents[dim])
          break;
        position[dim] = 0;
      }
      if (loop < 0)
        return success();
    }
  }

  void loadIndices(int64_t count) {
    for (auto [dim, reg] : program.indices) {
      int64_t *lane = lanes.intLanes(reg);
      for (int64_t i = 0; i < count; ++i)
        lane[i] = position[dim] + (dim == inner ? i : 0);
    }
  }

  LogicalResult runChunk(int64_t count) {
    loadIndices(count);
    for (unsigned index = 0; index < call.numInputs; ++index)
      if (failed(load(index, 0, count)))
        return failure();
    if (!serial)
      return success(succeeded(loadOutputs(0, count)) &&
                     succeeded(runCode(0, program.code.size(), 0, count)) &&
                     succeeded(store(0, count)));
    if (failed(runCode(0, numIndependent, 0, count)))
      return failure();
    for (int64_t lane = 0; lane < count; ++lane)
      if (failed(loadOutputs(lane, lane + 1)) ||
          failed(
              runCode(numIndependent, program.code.size(), lane, lane + 1)) ||
          failed(store(lane, lane + 1)))
        return failure();
    return success();
  }

  LogicalResult runCode(size_t first, size_t last, int64_t begin, int64_t end) {
    for (size_t index = first; index < last; ++index)
      if (failed(execute<T>(program, program.code[index], lanes, begin, end,
                            call.extracts)))
        return failure();
    return success();
  }

  /// Where the operand's element of lane 0 lies.
  int64_t offsetOf(const Access<T> &access) {
    int64_t offset = access.origin;
    for (unsigned dim = 0; dim < position.size(); ++dim)
      offset += position[dim] * access.strides[dim];
    return offset;
  }

  /// The same for one lane of an operand whose map is not linear.
  FailureOr<int64_t> mappedOffset(const Access<T> &access, int64_t lane) {
    Shape at(position.begin(), position.end());
    at[inner] += lane;
    Shape strides = rowMajorStrides(access.shape);
    int64_t offset = 0;
    for (auto [dim, expr] : llvm::enumerate(access.map.getResults())) {
      int64_t index = evaluate(expr, at);
      if (index < 0 || index >= access.shape[dim])
        return program.op->emitOpError()
               << "maps an iteration to index " << index << " of dimension "
               << dim << ", whose size is " << access.shape[dim];
      offset += index * strides[dim];
    }
    return offset;
  }

  /// Calls move(lane, offset) for the lanes [begin, end).
  template <class F>
  LogicalResult forLanes(const Access<T> &access, int64_t begin, int64_t end,
                         F &&move) {
    if (access.map) {
      for (int64_t lane = begin; lane < end; ++lane) {
        FailureOr<int64_t> offset = mappedOffset(access, lane);
        if (failed(offset))
          return failure();
        move(lane, *offset);
      }
      return success();
    }
    int64_t step = access.strides[inner];
    int64_t offset = offsetOf(access) + begin * step;
    for (int64_t lane = begin; lane < end; ++lane, offset += step)
      move(lane, offset);
    return success();
  }

  LogicalResult load(unsigned index, int64_t begin, int64_t end) {
    // linalg.map of some versions has no argument for its output.
    if (index >= program.arguments.size() || !program.arguments[index].used)
      return success();
    const Access<T> &access = call.accesses[index];
    Register reg = program.arguments[index].reg;
    if (reg.isInt) {
      int64_t *to = lanes.intLanes(reg.index);
      return forLanes(access, begin, end, [&](int64_t lane, int64_t offset) {
        to[lane] = access.ints[offset];
      });
    }
    T *to = lanes.floatLanes(reg.index);
    return forLanes(access, begin, end, [&](int64_t lane, int64_t offset) {
      to[lane] = access.floats[offset];
    });
  }

  LogicalResult loadOutputs(int64_t begin, int64_t end) {
    for (unsigned index = call.numInputs; index < call.accesses.size(); ++index)
      if (failed(load(index, begin, end)))
        return failure();
    return success();
  }

  LogicalResult store(int64_t begin, int64_t end) {
    for (auto [access, reg] : llvm::zip(outputs(), program.results)) {
      LogicalResult stored = success();
      if (reg.isInt) {
        const int64_t *from = lanes.intLanes(reg.index);
        stored =
            forLanes(access, begin, end,
                     [&, out = access.outInts](int64_t lane, int64_t offset) {
                       out[offset] = from[lane];
                     });
      } else {
        const T *from = lanes.floatLanes(reg.index);
        stored =
            forLanes(access, begin, end,
                     [&, out = access.outFloats](int64_t lane, int64_t offset) {
                       out[offset] = from[lane];
                     });
      }
      if (failed(stored))
        return failure();
    }
    return success();
  }

  const Program<T> &program;
  KernelCall<T> &call;
  Lanes<T> lanes;
  llvm::SmallVector<unsigned, 6> outer;
  Shape position;
  unsigned inner = 0;
  size_t numIndependent = 0;
  bool serial = false, unit = false, skips = false;
};

} // namespace

template <class T>
LogicalResult mlir::parc::eval::runKernel(const Program<T> &program,
                                          KernelCall<T> &call) {
  return Run<T>(program, call).run();
}

#define PARC_INSTANTIATE(T)                                                    \
  template LogicalResult mlir::parc::eval::runKernel(const Program<T> &,       \
                                                     KernelCall<T> &);         \
  template std::optional<unsigned> mlir::parc::eval::chooseInnermost(          \
      ArrayRef<Access<T>>, ArrayRef<int64_t>, std::optional<unsigned>);
PARC_EVAL_FOR_EACH_DOMAIN(PARC_INSTANTIATE)
#undef PARC_INSTANTIATE
