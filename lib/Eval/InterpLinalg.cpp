//===- InterpLinalg.cpp - Structured ops ----------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Every structured linalg op by its indexing maps and its body. A body that
/// multiplies and adds runs as plain strided loops.
///
//===----------------------------------------------------------------------===//

#include "Plan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AffineExpr.h"

using namespace mlir;
using namespace mlir::parc::eval;

//===----------------------------------------------------------------------===//
// Once an op
//===----------------------------------------------------------------------===//

/// `value` without the extensions it went through.
static Value withoutExtension(Value value) {
  while (auto extension = value.getDefiningOp<arith::ExtFOp>())
    value = extension.getIn();
  return value;
}

/// True for the body out + a * b, computed without rounding between.
static bool isContraction(linalg::LinalgOp op) {
  Block *body = op.getBlock();
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 ||
      body->getNumArguments() != 3)
    return false;
  auto add =
      body->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!add)
    return false;
  Value out = body->getArgument(2);
  Value term = add.getLhs() == out   ? add.getRhs()
               : add.getRhs() == out ? add.getLhs()
                                     : Value();
  auto product = term ? term.getDefiningOp<arith::MulFOp>() : nullptr;
  if (!product)
    return false;
  Value a = withoutExtension(product.getLhs()),
        b = withoutExtension(product.getRhs());
  return (a == body->getArgument(0) && b == body->getArgument(1)) ||
         (a == body->getArgument(1) && b == body->getArgument(0));
}

/// The loop that `value` counts with: the position in it plus values that do
/// not depend on it, in 64 bits. None for any other form.
static std::optional<unsigned> countedLoop(Value value) {
  if (!value.getType().isIndex() && !value.getType().isInteger(64))
    return std::nullopt;
  if (auto index = value.getDefiningOp<linalg::IndexOp>())
    return unsigned(index.getDim());
  if (auto castOp = value.getDefiningOp<arith::IndexCastOp>())
    return countedLoop(castOp.getIn());
  if (auto sum = value.getDefiningOp<arith::AddIOp>()) {
    auto left = countedLoop(sum.getLhs()), right = countedLoop(sum.getRhs());
    return left && right ? std::nullopt : left ? left : right;
  }
  if (auto difference = value.getDefiningOp<arith::SubIOp>())
    return countedLoop(difference.getLhs());
  return std::nullopt;
}

/// The arguments and loops that `value` depends on within `body`.
static void dependencies(Value value, Block &body,
                         llvm::SmallVectorImpl<unsigned> &arguments,
                         llvm::SmallVectorImpl<unsigned> &loops) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() == &body)
      arguments.push_back(argument.getArgNumber());
    return;
  }
  Operation *op = value.getDefiningOp();
  if (op->getBlock() != &body)
    return;
  if (auto index = dyn_cast<linalg::IndexOp>(op))
    loops.push_back(unsigned(index.getDim()));
  for (Value operand : op->getOperands())
    dependencies(operand, body, arguments, loops);
}

/// How often `loop` is among what `value` depends on.
static int64_t timesCounted(Value value, Block &body, unsigned loop) {
  llvm::SmallVector<unsigned> arguments, loops;
  dependencies(value, body, arguments, loops);
  return llvm::count(loops, loop);
}

/// Recognises the one-hot sum of a scatter; without it the body runs as it is.
template <class T>
static void findOneHot(linalg::LinalgOp op, Program<T> &program) {
  Block &body = *op.getBlock();
  if (op.getNumDpsInits() != 1)
    return;
  Value out = body.getArguments().back();
  auto add = body.getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!add || (add.getLhs() != out && add.getRhs() != out))
    return;
  Value term = add.getLhs() == out ? add.getRhs() : add.getLhs();
  auto select = term.getDefiningOp<arith::SelectOp>();
  auto compare =
      select ? select.getCondition().getDefiningOp<arith::CmpIOp>() : nullptr;
  auto zero = select ? select.getFalseValue().getDefiningOp<arith::ConstantOp>()
                     : nullptr;
  auto number = zero ? dyn_cast<FloatAttr>(zero.getValue()) : FloatAttr();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq ||
      !number || !number.getValue().isZero())
    return;
  auto left = countedLoop(compare.getLhs()),
       right = countedLoop(compare.getRhs());
  if (left.has_value() == right.has_value())
    return;
  typename Program<T>::OneHot hot;
  hot.dim = left ? *left : *right;
  hot.countsInB = right.has_value();
  Value counting = left ? compare.getLhs() : compare.getRhs();
  Value other = left ? compare.getRhs() : compare.getLhs();
  if (timesCounted(counting, body, hot.dim) != 1 ||
      timesCounted(other, body, hot.dim) != 0)
    return;
  dependencies(compare.getResult(), body, hot.arguments, hot.loops);
  if (llvm::is_contained(hot.arguments, body.getNumArguments() - 1))
    return;
  auto found = llvm::find_if(program.code, [&](const Instruction<T> &in) {
    return in.op == compare.getOperation();
  });
  hot.compare = found - program.code.begin();
  // Instructions before the comparison run on values that may not be loaded
  // yet; they must not be able to fail.
  for (const Instruction<T> &in :
       ArrayRef<Instruction<T>>(program.code).take_front(hot.compare))
    if (isa<tensor::ExtractOp, arith::RemSIOp, arith::RemUIOp, arith::DivSIOp,
            arith::DivUIOp, arith::CeilDivSIOp, arith::CeilDivUIOp,
            arith::FloorDivSIOp>(in.op))
      return;
  program.oneHot = std::move(hot);
}

/// Sums of bf16 are added up in f32 (see `parc.accumulate`) and rounded once:
/// what combines them does not round, the result is rounded when it is whole.
template <class T>
static void roundSumsOnce(linalg::LinalgOp op, OpPlan<T> &plan) {
  if (!std::is_same_v<T, float> || op.getNumReductionLoops() == 0)
    return;
  for (auto [index, value] :
       llvm::enumerate(op.getBlock()->getTerminator()->getOperands())) {
    if (!value.getType().isBF16())
      continue;
    plan.rounded.push_back(unsigned(index));
    for (Instruction<T> &in : plan.program->code)
      if (in.op == value.getDefiningOp())
        in.round = false;
  }
}

template <class T> static LogicalResult prepareStructured(OpPlan<T> &plan) {
  auto op = cast<linalg::LinalgOp>(plan.op);
  if (!op.hasPureTensorSemantics())
    return op.emitOpError() << "expected tensors; the evaluator has no memory";
  plan.program = std::make_unique<Program<T>>();
  plan.contraction = isContraction(op);
  if (failed(compileBody<T>(op, *op.getBlock(), unsigned(op.getNumDpsInputs()),
                            *plan.program)))
    return failure();
  roundSumsOnce(op, plan);
  if (op->hasAttr("parc.scatter"))
    findOneHot<T>(op, *plan.program);
  return success();
}

//===----------------------------------------------------------------------===//
// Loops from maps
//===----------------------------------------------------------------------===//

/// Adds `scale * expr` to the coefficients of a linear expression; false where
/// it is not linear.
static bool addLinear(AffineExpr expr, int64_t scale,
                      MutableArrayRef<int64_t> coefficients,
                      int64_t &constant) {
  if (auto number = dyn_cast<AffineConstantExpr>(expr)) {
    constant += scale * number.getValue();
    return true;
  }
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    coefficients[dim.getPosition()] += scale;
    return true;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return false;
  if (expr.getKind() == AffineExprKind::Add)
    return addLinear(binary.getLHS(), scale, coefficients, constant) &&
           addLinear(binary.getRHS(), scale, coefficients, constant);
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  return expr.getKind() == AffineExprKind::Mul && factor &&
         addLinear(binary.getLHS(), scale * factor.getValue(), coefficients,
                   constant);
}

/// The extent of every loop, from the operands' sizes.
static LogicalResult findExtents(linalg::LinalgOp op, ArrayRef<AffineMap> maps,
                                 ArrayRef<Shape> shapes, Shape &extents) {
  extents.assign(op.getNumLoops(), -1);
  for (auto [index, map, shape] : llvm::enumerate(maps, shapes))
    for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
      auto loop = dyn_cast<AffineDimExpr>(expr);
      if (!loop)
        continue;
      int64_t &extent = extents[loop.getPosition()];
      if (extent >= 0 && extent != shape[dim])
        return op.emitOpError()
               << "expected extent " << extent << " of loop "
               << loop.getPosition() << " for dimension " << dim
               << " of operand " << index << ", got " << shape[dim];
      extent = shape[dim];
    }
  for (auto [loop, extent] : llvm::enumerate(extents))
    if (extent < 0)
      return op.emitOpError() << "gives loop " << loop
                              << " no extent: no operand has it as a dimension";
  return success();
}

/// The part of an access that its map decides.
template <class T>
static LogicalResult layOut(linalg::LinalgOp op, unsigned index, AffineMap map,
                            const Shape &shape, ArrayRef<int64_t> extents,
                            Access<T> &access) {
  Shape strides = rowMajorStrides(shape);
  access.strides.assign(extents.size(), 0);
  bool empty = llvm::is_contained(extents, 0);
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    Shape coefficients(extents.size(), 0);
    int64_t constant = 0;
    if (!addLinear(expr, 1, coefficients, constant)) {
      access.map = map;
      access.shape = shape;
      return success();
    }
    int64_t low = constant, high = constant;
    for (auto [loop, coefficient] : llvm::enumerate(coefficients)) {
      access.strides[loop] += coefficient * strides[dim];
      (coefficient < 0 ? low : high) += coefficient * (extents[loop] - 1);
    }
    access.origin += constant * strides[dim];
    if (!empty && (low < 0 || high >= shape[dim]))
      return op.emitOpError() << "reads indices " << low << " to " << high
                              << " of dimension " << dim << " of operand "
                              << index << ", whose size is " << shape[dim];
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// out += a * b over all loops but the innermost, which is done by strides.
template <class T> class Contraction {
public:
  explicit Contraction(KernelCall<T> &call)
      : extents(call.extents), a(call.accesses[0]), b(call.accesses[1]),
        out(call.accesses[2]) {
    ArrayRef<Access<T>> outputs =
        ArrayRef<Access<T>>(call.accesses).take_back();
    inner = chooseInnermost<T>(outputs, extents).value_or(extents.size() - 1);
    for (unsigned loop = 0; loop < extents.size(); ++loop)
      if (loop != inner)
        outer.push_back(loop);
  }

  void run() { loop(0, a.origin, b.origin, out.origin); }

private:
  void loop(size_t depth, int64_t offsetA, int64_t offsetB, int64_t offsetOut) {
    if (depth == outer.size())
      return row(a.floats + offsetA, b.floats + offsetB,
                 out.outFloats + offsetOut);
    unsigned at = outer[depth];
    for (int64_t i = 0; i < extents[at]; ++i) {
      loop(depth + 1, offsetA, offsetB, offsetOut);
      offsetA += a.strides[at];
      offsetB += b.strides[at];
      offsetOut += out.strides[at];
    }
  }

  void row(const T *x, const T *y, T *z) {
    int64_t count = extents[inner], stepX = a.strides[inner],
            stepY = b.strides[inner], stepZ = out.strides[inner];
    if (stepZ == 0) {
      T sum = *z;
      for (int64_t i = 0; i < count; ++i)
        sum += x[i * stepX] * y[i * stepY];
      *z = sum;
      return;
    }
    if (stepX == 1 && stepY == 0) {
      std::swap(x, y);
      std::swap(stepX, stepY);
    }
    // A loop of its own, which the compiler makes into vector code.
    if (stepZ == 1 && stepX == 0 && stepY == 1) {
      T scale = *x;
      for (int64_t i = 0; i < count; ++i)
        z[i] += scale * y[i];
      return;
    }
    for (int64_t i = 0; i < count; ++i)
      z[i * stepZ] += x[i * stepX] * y[i * stepY];
  }

  ArrayRef<int64_t> extents;
  const Access<T> &a, &b, &out;
  llvm::SmallVector<unsigned, 6> outer;
  unsigned inner = 0;
};

/// The output's buffer: what the loops write whole and never read is fresh.
template <class T>
static Tensor<T> outputOf(Interpreter<T> &interpreter, const OpPlan<T> &plan,
                          OpOperand &operand, AffineMap map,
                          ArrayRef<int64_t> extents) {
  auto &arguments = plan.program->arguments;
  unsigned index = operand.getOperandNumber();
  bool read = index < arguments.size() && arguments[index].used;
  if (read || !map.isProjectedPermutation() || llvm::is_contained(extents, 0))
    return interpreter.take(plan, operand);
  const Tensor<T> &init = interpreter.tensor(operand.get());
  return Tensor<T>::zeros(init.shape(), init.isInt());
}

template <class T>
static LogicalResult bindOperands(Interpreter<T> &interpreter,
                                  const OpPlan<T> &plan, KernelCall<T> &call,
                                  llvm::SmallVectorImpl<Tensor<T>> &outputs) {
  auto op = cast<linalg::LinalgOp>(plan.op);
  auto maps = op.getIndexingMapsArray();
  call.numInputs = unsigned(op.getNumDpsInputs());
  llvm::SmallVector<Shape, 4> shapes;
  for (Value operand : op->getOperands())
    shapes.emplace_back(interpreter.tensor(operand).shape());
  if (failed(findExtents(op, maps, shapes, call.extents)))
    return failure();
  for (OpOperand &init : op.getDpsInitsMutable())
    outputs.push_back(outputOf(interpreter, plan, init,
                               maps[init.getOperandNumber()], call.extents));
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned index = operand.getOperandNumber();
    Access<T> access;
    bool isOutput = index >= call.numInputs;
    if (isOutput) {
      Tensor<T> &output = outputs[index - call.numInputs];
      access.isInt = output.isInt();
      if (access.isInt)
        access.ints = access.outInts = output.mutableInts();
      else
        access.floats = access.outFloats = output.mutableFloats();
    } else {
      const Tensor<T> &input = interpreter.tensor(operand.get());
      access.isInt = input.isInt();
      if (access.isInt)
        access.ints = input.ints();
      else
        access.floats = input.floats();
    }
    if (failed(layOut(op, index, maps[index], shapes[index], call.extents,
                      access)))
      return failure();
    call.accesses.push_back(std::move(access));
  }
  return success();
}

template <class T>
static LogicalResult runStructured(Interpreter<T> &interpreter,
                                   const OpPlan<T> &plan) {
  KernelCall<T> call;
  llvm::SmallVector<Tensor<T>, 2> outputs;
  if (failed(bindOperands(interpreter, plan, call, outputs)))
    return failure();
  bool linear =
      llvm::none_of(call.accesses, [](auto &access) { return access.map; });
  if (plan.contraction && linear && !call.extents.empty()) {
    Contraction<T>(call).run();
  } else {
    for (auto &capture : plan.program->captures)
      call.captures.push_back(interpreter.tensor(capture.value));
    for (auto &extract : plan.program->extracts)
      call.extracts.push_back(interpreter.tensor(extract.tensor));
    if (failed(runKernel(*plan.program, call)))
      return failure();
  }
  for (unsigned index : plan.rounded) {
    MutableArrayRef<T> elements(outputs[index].mutableFloats(),
                                static_cast<size_t>(outputs[index].size()));
    for (T &element : elements)
      element = DomainOf<T>::roundToBF16(element);
  }
  for (auto [result, output] : llvm::zip(plan.op->getResults(), outputs))
    if (failed(interpreter.set(result, std::move(output))))
      return failure();
  return success();
}

template <class T> Handler<T> mlir::parc::eval::structuredHandler() {
  return {runStructured<T>, prepareStructured<T>};
}

#define PARC_INSTANTIATE(T)                                                    \
  template Handler<T> mlir::parc::eval::structuredHandler();
PARC_EVAL_FOR_EACH_DOMAIN(PARC_INSTANTIATE)
#undef PARC_INSTANTIATE
