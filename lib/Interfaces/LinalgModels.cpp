//===- LinalgModels.cpp - Factors of linalg structured ops ----------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The factors of a structured op are its loops: the indexing maps say which
/// dimensions belong to a loop, the body says how a split reduction combines
/// and in which operands the op is linear.
///
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "Parc/Parc.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::parc;

//===----------------------------------------------------------------------===//
// Combiners
//===----------------------------------------------------------------------===//

/// The reduction that folds `operand` into the other operand of `op`.
/// Unsigned maxima are left out: a partial value combines as signed.
static std::optional<ReductionKind> getCombiner(Operation *op,
                                                unsigned operand) {
  using Kind = std::optional<ReductionKind>;
  return TypeSwitch<Operation *, Kind>(op)
      .Case<arith::AddFOp, arith::AddIOp>(
          [](Operation *) { return ReductionKind::Sum; })
      .Case<arith::SubFOp, arith::SubIOp>([&](Operation *) {
        return operand == 0 ? Kind(ReductionKind::Sum) : Kind();
      })
      .Case<arith::MaximumFOp, arith::MaxNumFOp, arith::MaxSIOp>(
          [](Operation *) { return ReductionKind::Max; })
      .Case<arith::MinimumFOp, arith::MinNumFOp, arith::MinSIOp>(
          [](Operation *) { return ReductionKind::Min; })
      .Default([](Operation *) { return Kind(); });
}

/// The values of the body that depend on the init of a result other than
/// `result`: in a reduction they change from iteration to iteration.
static llvm::DenseSet<Value> dependOnOtherInits(linalg::LinalgOp op,
                                                unsigned result) {
  llvm::DenseSet<Value> depend;
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    if (BlockArgument arg = getBodyArgument(op, op.getNumDpsInputs() + i);
        arg && i != result)
      depend.insert(arg);
  for (Operation &bodyOp : *op.getBlock())
    if (llvm::any_of(bodyOp.getOperands(),
                     [&](Value value) { return depend.contains(value); }))
      depend.insert(bodyOp.result_begin(), bodyOp.result_end());
  return depend;
}

std::optional<ReductionKind> mlir::parc::matchCombiner(linalg::LinalgOp op,
                                                       unsigned result) {
  Value value = getBodyArgument(op, op.getNumDpsInputs() + result);
  Operation *yield = op.getBlock()->getTerminator();
  std::optional<ReductionKind> kind;
  llvm::DenseSet<Value> moving = dependOnOtherInits(op, result);
  while (value && value.hasOneUse() && !moving.contains(value)) {
    OpOperand &use = *value.use_begin();
    if (use.getOwner() == yield)
      return use.getOperandNumber() == result ? kind : std::nullopt;
    auto next = getCombiner(use.getOwner(), use.getOperandNumber());
    if (!next || (kind && *kind != *next))
      return std::nullopt;
    kind = next;
    value = use.getOwner()->getResult(0);
  }
  return std::nullopt;
}

Value mlir::parc::getCapturedTensor(Operation *op) {
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value value : captured)
    if (isa<ShapedType>(value.getType()))
      return value;
  return {};
}

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

namespace {

/// Builds the factors of one structured op; factor i is loop i, further
/// factors stand for dimensions that no single loop indexes.
class FactorBuilder {
public:
  explicit FactorBuilder(linalg::LinalgOp op) : op(op) {}
  OpFactors build();

private:
  void addLoops();
  ValueFactors addValue(AffineMap map, Type type);
  void addReductions();
  void addOffsets();

  linalg::LinalgOp op;
  OpFactors factors;
};

} // namespace

void FactorBuilder::addLoops() {
  SmallVector<int64_t> sizes(op.getNumLoops(), ShapedType::kDynamic);
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    if (!type)
      continue;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    for (auto [expr, size] : llvm::zip(map.getResults(), type.getShape()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        if (!ShapedType::isDynamic(size))
          sizes[dim.getPosition()] = size;
  }
  for (int64_t size : sizes)
    factors.add(size);
}

ValueFactors FactorBuilder::addValue(AffineMap map, Type type) {
  ValueFactors dims;
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return dims;
  llvm::SmallBitVector seen(op.getNumLoops());
  for (auto [expr, size] : llvm::zip(map.getResults(), tensor.getShape())) {
    DimFactors &belongs = dims.emplace_back();
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      unsigned loop = dim.getPosition();
      belongs.push_back(loop);
      // A diagonal: no axis can split two dimensions of one value.
      if (seen.test(loop))
        factors.factors[loop].splittable = false;
      seen.set(loop);
      continue;
    }
    for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
      if (expr.isFunctionOfDim(loop))
        factors.factors[loop].splittable = false;
    if (size != 1)
      belongs.push_back(factors.add(size, 1, /*splittable=*/false));
  }
  return dims;
}

/// What a split loop does to the results that lack it. The init is an addend of
/// the chain, and whoever splits the loop makes it partial like the result.
void FactorBuilder::addReductions() {
  SmallVector<std::optional<ReductionKind>> kinds(op.getNumLoops());
  for (unsigned i = 0; i < op->getNumResults(); ++i) {
    std::optional<ReductionKind> combiner = matchCombiner(op, i);
    AffineMap map = op.getMatchingIndexingMap(
        op.getDpsInitOperand(static_cast<int64_t>(i)));
    for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
      if (map.isFunctionOfDim(loop))
        continue;
      Factor &factor = factors.factors[loop];
      bool agrees = combiner && (!kinds[loop] || *kinds[loop] == *combiner);
      if (!agrees) {
        factor.splittable = false;
        continue;
      }
      kinds[loop] = combiner;
      factor.reduction = *combiner;
    }
  }
}

void FactorBuilder::addOffsets() {
  op.getBlock()->walk([&](linalg::IndexOp index) {
    factors.factors[index.getDim()].needsOffset = true;
  });
}

OpFactors FactorBuilder::build() {
  addLoops();
  for (OpOperand &operand : op->getOpOperands())
    factors.operands.push_back(
        addValue(op.getMatchingIndexingMap(&operand), operand.get().getType()));
  // A result has its init's factors, those of irregular dimensions included.
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    factors.results.push_back(factors.operands[op.getNumDpsInputs() + i]);
  factors.linear = findLinearSets(op);
  addReductions();
  addOffsets();
  return std::move(factors);
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

/// Constants that the body captures belong to the function around the original
/// op: the local body gets its own.
static void sinkCapturedConstants(OpBuilder &builder, Operation *op) {
  OpBuilder::InsertionGuard guard(builder);
  for (Region &region : op->getRegions()) {
    if (region.empty())
      continue;
    llvm::SetVector<Value> captured;
    getUsedValuesDefinedAbove(region, captured);
    builder.setInsertionPointToStart(&region.front());
    for (Value value : captured) {
      Operation *def = value.getDefiningOp();
      if (!def || !matchPattern(def, m_Constant()))
        continue;
      replaceAllUsesInRegionWith(value, builder.clone(*def)->getResult(0),
                                 region);
    }
  }
}

namespace {

template <typename ConcreteOp>
struct LinalgSharding
    : ShardableOpInterface::ExternalModel<LinalgSharding<ConcreteOp>,
                                          ConcreteOp> {
  FailureOr<OpFactors> getFactors(Operation *op) const {
    auto linalgOp = cast<linalg::LinalgOp>(op);
    if (!linalgOp.hasPureTensorSemantics())
      return op->emitError("expected tensors, got memrefs; factors exist on "
                           "tensors only"),
             failure();
    if (Value tensor = getCapturedTensor(op)) {
      InFlightDiagnostic diag =
          op->emitError("the body reads a tensor of type ")
          << tensor.getType()
          << " that is not an operand, so nothing says how it would be split; "
             "pass it through `ins`";
      diag.attachNote(tensor.getLoc()) << "the tensor is defined here";
      return failure();
    }
    return FactorBuilder(linalgOp).build();
  }

  Operation *buildLocal(Operation *op, OpBuilder &builder, ValueRange operands,
                        TypeRange types,
                        ArrayRef<SmallVector<OpFoldResult>>) const {
    Operation *local = cloneWithTypes(builder, op, operands, types);
    sinkCapturedConstants(builder, local);
    return local;
  }

  void setFactorOffset(Operation *op, OpBuilder &builder, unsigned factor,
                       Value start) const {
    OpBuilder::InsertionGuard guard(builder);
    op->getRegion(0).walk([&](linalg::IndexOp index) {
      if (index.getDim() != factor)
        return;
      builder.setInsertionPointAfter(index);
      Value global = arith::AddIOp::create(builder, index.getLoc(),
                                           index.getResult(), start);
      index.getResult().replaceAllUsesExcept(global, global.getDefiningOp());
    });
  }
};

template <typename... Ops> void attachAll(MLIRContext *context) {
  (Ops::template attachInterface<LinalgSharding<Ops>>(*context), ...);
}

} // namespace

void mlir::parc::attachLinalgSharding(MLIRContext *context) {
  attachAll<
#define GET_OP_LIST
#include "mlir/Dialect/Linalg/IR/LinalgStructuredOps.cpp.inc"
      >(context);
}
