//===- LinalgGradients.cpp - Gradients of linalg structured ops -----------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// One rule for every structured op that maps elements or sums: the gradient
/// of an operand runs over the same loops, reads the result's gradient at the
/// result's map, goes backwards through the scalar body and is summed over the
/// loops that the operand's map lacks. A body that comes out as a product, a
/// copy or a sum becomes linalg.contract, broadcast, transpose or reduce.
///
//===----------------------------------------------------------------------===//

#include "LinalgRaising.h"
#include "Models.h"
#include "Parc/Parc.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "parc/Interfaces/Casts.h"

using namespace mlir;
using namespace mlir::parc;

/// True where each result element is an input's: a permutation.
static bool isMove(linalg::LinalgOp op) {
  if (op.getNumDpsInputs() != 1 || op->getNumResults() != 1 ||
      op.getNumReductionLoops() != 0)
    return false;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  return op.getBlock()->getTerminator()->getOperand(0) ==
             getBodyArgument(op, 0) &&
         maps[0].isPermutation() && maps[1].isPermutation();
}

namespace {

/// Builds the gradient of one input of one structured op, in elements of one
/// type where it is a sum.
class InputGradient {
public:
  InputGradient(linalg::LinalgOp op, OpBuilder &builder, ValueRange gradients,
                unsigned input, Type element)
      : op(op), builder(builder), loc(op.getLoc()), gradients(gradients),
        input(input),
        type(cast<RankedTensorType>(op->getOperand(input).getType())
                 .clone(element)),
        map(op.getMatchingIndexingMap(&op->getOpOperand(input))) {}

  /// Null where the results do not depend on the input.
  FailureOr<Value> build();

private:
  bool sums() const;
  FailureOr<linalg::GenericOp> buildGeneric();
  LogicalResult buildBody(OpBuilder &inner, Block *block);
  FailureOr<Value> reverse(OpBuilder &inner, ArrayRef<Operation *> ops,
                           const IRMapping &mapping,
                           ArrayRef<Value> resultGradients);

  linalg::LinalgOp op;
  OpBuilder &builder;
  Location loc;
  ValueRange gradients;
  unsigned input;
  RankedTensorType type;
  AffineMap map;
};

} // namespace

/// True where the input's map lacks loops, which are then summed over.
bool InputGradient::sums() const {
  for (unsigned loop = 0; loop < map.getNumDims(); ++loop)
    if (!map.isFunctionOfDim(loop))
      return true;
  return false;
}

static bool hasFloatElements(Value value) {
  return isa<FloatType>(getElementTypeOrSelf(value.getType()));
}

/// The values of a body that depend on `source`.
static llvm::DenseSet<Value> findActive(ArrayRef<Operation *> ops,
                                        Value source) {
  llvm::DenseSet<Value> active;
  active.insert(source);
  for (Operation *op : ops)
    if (llvm::any_of(op->getOperands(),
                     [&](Value value) { return active.contains(value); }))
      for (Value result : op->getResults())
        if (hasFloatElements(result))
          active.insert(result);
  return active;
}

/// Reverse mode over the cloned body `ops`: the gradient of the input's
/// argument, null where there is none.
FailureOr<Value> InputGradient::reverse(OpBuilder &inner,
                                        ArrayRef<Operation *> ops,
                                        const IRMapping &mapping,
                                        ArrayRef<Value> resultGradients) {
  Value source = mapping.lookup(getBodyArgument(op, input));
  llvm::DenseSet<Value> active = findActive(ops, source);
  llvm::DenseMap<Value, Value> adjoints;
  auto accumulate = [&](Value value, Value gradient) {
    Value &sum = adjoints[value];
    sum = sum ? arith::AddFOp::create(inner, loc, sum, gradient).getResult()
              : gradient;
  };
  Operation *yield = op.getBlock()->getTerminator();
  for (auto [value, gradient] :
       llvm::zip(yield->getOperands(), resultGradients))
    if (gradient && active.contains(mapping.lookupOrDefault(value)))
      accumulate(mapping.lookupOrDefault(value), gradient);
  for (Operation *bodyOp : llvm::reverse(ops)) {
    if (bodyOp->getNumResults() != 1)
      continue;
    Value gradient = adjoints.lookup(bodyOp->getResult(0));
    if (!gradient)
      continue;
    SmallVector<bool> wanted;
    for (Value operand : bodyOp->getOperands())
      wanted.push_back(active.contains(operand));
    SmallVector<Value> operandGradients;
    if (failed(buildElementwiseGradient(inner, bodyOp, gradient, wanted,
                                        operandGradients)))
      return op->emitError("'") << bodyOp->getName() << "' in the body of '"
                                << op->getName() << "' has no gradient rule";
    for (auto [operand, operandGradient] :
         llvm::zip_equal(bodyOp->getOperands(), operandGradients))
      if (operandGradient)
        accumulate(operand, operandGradient);
  }
  return adjoints.lookup(source);
}

/// Removes what no yielded value needs.
static void eraseDeadOps(Block *block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

/// The body: the forward body, its reverse, and the sum. Arguments: the op's
/// operands, the gradients of its results, the accumulator.
LogicalResult InputGradient::buildBody(OpBuilder &inner, Block *block) {
  IRMapping mapping;
  unsigned numOperands = op->getNumOperands();
  for (unsigned i = 0; i < numOperands; ++i)
    if (BlockArgument arg = getBodyArgument(op, i))
      mapping.map(arg, block->getArgument(i));
  SmallVector<Operation *> ops;
  for (Operation &bodyOp : op.getBlock()->without_terminator())
    ops.push_back(inner.clone(bodyOp, mapping));
  SmallVector<Value> resultGradients;
  unsigned next = numOperands;
  for (Value gradient : gradients)
    resultGradients.push_back(gradient ? block->getArgument(next++) : Value());
  FailureOr<Value> result = reverse(inner, ops, mapping, resultGradients);
  if (failed(result))
    return failure();
  Value value = *result;
  if (value && sums()) {
    Value sum = block->getArguments().back();
    // Sums accumulate in the wide type.
    if (auto trunc = value.getDefiningOp<arith::TruncFOp>();
        trunc && trunc.getIn().getType() == sum.getType())
      value = trunc.getIn();
    else if (value.getType() != sum.getType())
      value = arith::ExtFOp::create(inner, loc, sum.getType(), value);
    value = arith::AddFOp::create(inner, loc, sum, value);
  }
  linalg::YieldOp::create(inner, loc, value ? ValueRange(value) : ValueRange());
  eraseDeadOps(block);
  return success();
}

/// The gradient as a generic op that reads everything it could need; null where
/// nothing depends on the input.
FailureOr<linalg::GenericOp> InputGradient::buildGeneric() {
  SmallVector<Value> inputs(op->getOperands());
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  for (auto [i, gradient] : llvm::enumerate(gradients)) {
    if (!gradient)
      continue;
    inputs.push_back(gradient);
    maps.push_back(op.getMatchingIndexingMap(op.getDpsInitOperand(i)));
  }
  maps.push_back(map);
  // Without a sum the elements are those of the body: what is moved, is moved.
  Type element = sums() ? type.getElementType()
                        : getElementTypeOrSelf(op->getOperand(input));
  if (isMove(op))
    element = getElementTypeOrSelf(gradients.front());
  if (sums() && element.getIntOrFloatBitWidth() < 32)
    element = builder.getF32Type();
  auto sumType = RankedTensorType::get(type.getShape(), element);
  Value init =
      sums() ? buildZeros(builder, loc, sumType)
             : tensor::EmptyOp::create(builder, loc, sumType, ValueRange())
                   .getResult();
  SmallVector<utils::IteratorType> iterators;
  for (unsigned loop = 0; loop < map.getNumDims(); ++loop)
    iterators.push_back(map.isFunctionOfDim(loop)
                            ? utils::IteratorType::parallel
                            : utils::IteratorType::reduction);
  LogicalResult built = success();
  auto generic = linalg::GenericOp::create(
      builder, loc, TypeRange(sumType), inputs, ValueRange(init), maps,
      iterators, [&](OpBuilder &inner, Location, ValueRange) {
        built = buildBody(inner, inner.getInsertionBlock());
      });
  if (succeeded(built) && generic.getBlock()->getTerminator()->getNumOperands())
    return generic;
  eraseWithInit(generic);
  if (failed(built))
    return failure();
  return linalg::GenericOp();
}

FailureOr<Value> InputGradient::build() {
  if (!map.isProjectedPermutation(/*allowZeroInResults=*/true))
    return op->emitError("expected each dimension of operand ")
           << input << " of '" << op->getName() << "' to be one loop, got "
           << AffineMapAttr::get(map) << ", which has no gradient rule";
  FailureOr<linalg::GenericOp> generic = buildGeneric();
  if (failed(generic))
    return failure();
  if (!*generic)
    return Value();
  Value result = raiseGeneric(builder, *generic);
  return sums() ? withElements(builder, loc, result, type.getElementType())
                : result;
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

/// The gradient of one factor of a contraction: the result's gradient
/// contracted with the other factor. Operands of low precision are multiplied
/// in it and accumulated in the wider of the result's type and `element`, which
/// the gradient is given in.
static Value buildContraction(linalg::LinalgOp op, OpBuilder &builder,
                              Value gradient, unsigned input, Type element) {
  Location loc = op.getLoc();
  unsigned other = 1 - input;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<AffineMap> contraction{maps[2], maps[other], maps[input]};
  if (!isContraction(contraction))
    return {};
  auto type = cast<RankedTensorType>(op->getOperand(input).getType());
  Type accumulator = getElementTypeOrSelf(op->getResult(0));
  if (element.getIntOrFloatBitWidth() > accumulator.getIntOrFloatBitWidth())
    accumulator = element;
  Value factor = op->getOperand(other);
  gradient = withElements(builder, loc, gradient, getElementTypeOrSelf(factor));
  Value zeros = buildZeros(builder, loc,
                           RankedTensorType::get(type.getShape(), accumulator));
  Value result =
      linalg::ContractOp::create(builder, loc, TypeRange(zeros.getType()),
                                 ValueRange{gradient, factor}, zeros,
                                 builder.getAffineMapArrayAttr(contraction))
          .getResult(0);
  return withElements(builder, loc, result, element);
}

//===----------------------------------------------------------------------===//
// Model
//===----------------------------------------------------------------------===//

/// Checks that all results are maps or sums, and that no gradient would be
/// lost in what the body captures.
static LogicalResult checkDifferentiable(linalg::LinalgOp op) {
  for (Type type : op->getOperandTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type);
        tensor && !tensor.hasStaticShape())
      return op->emitError("expected a static shape to differentiate, got ")
             << type;
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value value : captured)
    if (hasFloatElements(value) && !matchPattern(value, m_Constant()))
      return op->emitError("the body reads a value of type ")
             << value.getType()
             << " that is not an operand, so it would get no gradient; pass it "
                "through `ins`";
  for (unsigned i = 0; i < op->getNumResults(); ++i) {
    unsigned init = op.getNumDpsInputs() + i;
    bool reduces = op.getNumReductionLoops() != 0;
    if (reduces ? matchCombiner(op, i) != ReductionKind::Sum
                : readsOperand(op, init) &&
                      matchCombiner(op, i) != ReductionKind::Sum)
      return op->emitError("'")
             << op->getName() << "' has no gradient rule for result " << i
             << "; expected a sum over the loops or an elementwise body";
  }
  return success();
}

/// Exactly `acc + a * b` on inputs a and b, casts to the result's type aside.
static bool isProductSum(linalg::LinalgOp op) {
  if (op->getNumOperands() != 3 || op->getNumResults() != 1 ||
      !llvm::all_of(op->getOperands(), hasFloatElements) ||
      !llvm::all_of(op.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isProjectedPermutation(); }))
    return false;
  Value sum = op.getBlock()->getTerminator()->getOperand(0);
  return matchProductSum(op.getBlock(), sum, /*allowCasts=*/true);
}

namespace {

template <typename ConcreteOp>
struct LinalgGradient
    : DifferentiableOpInterface::ExternalModel<LinalgGradient<ConcreteOp>,
                                               ConcreteOp> {
  bool onlyMoves(Operation *op) const {
    return isMove(cast<linalg::LinalgOp>(op));
  }

  LogicalResult buildGradient(Operation *operation, OpBuilder &builder,
                              ValueRange resultGradients, ArrayRef<Type> wanted,
                              SmallVectorImpl<Value> &gradients) const {
    auto op = cast<linalg::LinalgOp>(operation);
    unsigned numInputs = op.getNumDpsInputs();
    gradients.assign(op->getNumOperands(), Value());
    SmallVector<unsigned> targets;
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      if (wanted[i] && readsOperand(op, i) &&
          isa<RankedTensorType>(op->getOperand(i).getType()) &&
          hasFloatElements(op->getOperand(i)) &&
          llvm::any_of(resultGradients, [](Value value) { return !!value; }))
        targets.push_back(i);
    if (targets.empty())
      return success();
    if (failed(checkDifferentiable(op)))
      return failure();
    bool product = isProductSum(op);
    for (unsigned target : targets) {
      if (target >= numInputs) {
        // An addend of its result, indexed alike.
        gradients[target] = resultGradients[target - numInputs];
        continue;
      }
      if (product)
        gradients[target] = buildContraction(op, builder, resultGradients[0],
                                             target, wanted[target]);
      if (gradients[target])
        continue;
      FailureOr<Value> gradient =
          InputGradient(op, builder, resultGradients, target, wanted[target])
              .build();
      if (failed(gradient))
        return failure();
      gradients[target] = *gradient;
    }
    return success();
  }
};

template <typename... Ops> void attachAll(MLIRContext *context) {
  (Ops::template attachInterface<LinalgGradient<Ops>>(*context), ...);
}

} // namespace

void mlir::parc::attachLinalgGradients(MLIRContext *context) {
  attachAll<
#define GET_OP_LIST
#include "mlir/Dialect/Linalg/IR/LinalgStructuredOps.cpp.inc"
      >(context);
}
