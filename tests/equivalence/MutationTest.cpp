//===- MutationTest.cpp - The comparison has teeth ------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Breaks staged programs in the ways that partitioners are known to break
/// them, one op at a time, and demands that the comparison in exact arithmetic
/// sees each of them.
///
//===----------------------------------------------------------------------===//

#include "Harness.h"
#include "Model.h"
#include "NN/NN.h"
#include "OpCases.h"
#include "mlir/IR/Verifier.h"
#include "parc/Analysis/OpLayout.h"
#include "llvm/ADT/MapVector.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::equiv;

namespace {

/// A correct staged program, what it must compute, and two axes of it that are
/// equally long.
struct Subject {
  std::string name;
  OwningOpRef<ModuleOp> prepared, staged;
  Whole<Zp> whole;
  std::string axis, other;
};

/// A way to break an op; false where it does not apply.
using Break = std::function<bool(Operation *, const Subject &)>;
struct Mutation {
  std::string name;
  /// The kind of op that it applies to.
  StringRef op;
  Break apply;
};

} // namespace

//===----------------------------------------------------------------------===//
// Mutations
//===----------------------------------------------------------------------===//

static void replace(Operation *op, Value by) {
  op->getResult(0).replaceAllUsesWith(by);
  op->erase();
}

/// Replaces the value of an op by something computed from it.
static void wrap(Operation *op, function_ref<Value(OpBuilder &, Value)> by) {
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  Value result = op->getResult(0), made = by(builder, result);
  result.replaceAllUsesExcept(made, made.getDefiningOp());
}

/// Puts the other of the subject's two axes in the place of the one that an
/// attribute names.
static bool swapAxis(Operation *op, StringRef attr, const Subject &subject) {
  OpBuilder builder(op->getContext());
  Attribute one = builder.getStringAttr(subject.axis),
            two = builder.getStringAttr(subject.other);
  SmallVector<Attribute> axes(op->getAttrOfType<ArrayAttr>(attr).getValue());
  if (llvm::is_contained(axes, one) == llvm::is_contained(axes, two))
    return false;
  for (Attribute &axis : axes)
    if (axis == one || axis == two)
      axis = axis == one ? two : one;
  op->setAttr(attr, builder.getArrayAttr(axes));
  return true;
}

template <class Op> static Break dropped() {
  return [](Operation *op, const Subject &) {
    auto found = dyn_cast<Op>(op);
    if (!found || found.getResult().getType() != found->getOperand(0).getType())
      return false;
    replace(op, found->getOperand(0));
    return true;
  };
}

/// What an all-gather would leave if the other ranks sent nothing.
static bool keepOwnPart(Operation *op, const Subject &) {
  auto gather = dyn_cast<AllGatherOp>(op);
  if (!gather || !gather.getType().hasStaticShape() ||
      !gather.getOuter().empty() || isZero(gather.getInput()))
    return false;
  OpBuilder builder(op);
  Location loc = op->getLoc();
  auto type = cast<RankedTensorType>(gather.getType());
  Value zero = arith::ConstantOp::create(
      builder, loc,
      DenseElementsAttr::get(type, builder.getZeroAttr(type.getElementType())));
  auto part = [&](auto tag) -> Value {
    return decltype(tag)::create(builder, loc, builder.getIndexType(),
                                 gather.getAxesAttr(), gather.getExtentAttr(),
                                 gather.getGrainAttr())
        .getResult();
  };
  SmallVector<OpFoldResult> offsets, sizes, strides;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    bool split = dim == static_cast<int64_t>(gather.getDim());
    offsets.push_back(split ? OpFoldResult(part(PartStartOp()))
                            : builder.getIndexAttr(0));
    auto source = cast<RankedTensorType>(gather.getInput().getType());
    sizes.push_back(source.isDynamicDim(dim)
                        ? OpFoldResult(part(PartSizeOp()))
                        : builder.getIndexAttr(source.getDimSize(dim)));
    strides.push_back(builder.getIndexAttr(1));
  }
  replace(op, tensor::InsertSliceOp::create(builder, loc, gather.getInput(),
                                            zero, offsets, sizes, strides));
  return true;
}

/// A reduce-scatter that keeps its part but adds nothing.
static bool scatterOnly(Operation *op, const Subject &) {
  auto scatter = dyn_cast<ReduceScatterOp>(op);
  if (!scatter)
    return false;
  OpBuilder builder(op);
  replace(op, SliceOp::create(builder, op->getLoc(), scatter.getType(),
                              scatter.getInput(), scatter.getDimAttr(),
                              scatter.getExtentAttr(), scatter.getGrainAttr(),
                              scatter.getAxesAttr(), scatter.getOuterAttr()));
  return true;
}

static bool reduceByMax(Operation *op, const Subject &) {
  auto reduce = dyn_cast<AllReduceOp>(op);
  if (!reduce || reduce.getKind() != ReductionKind::Sum)
    return false;
  reduce.setKind(ReductionKind::Max);
  return true;
}

/// Reduces over the first of several axes only.
static bool reduceLess(Operation *op, const Subject &) {
  auto reduce = dyn_cast<AllReduceOp>(op);
  if (!reduce || reduce.getAxes().size() < 2)
    return false;
  reduce.setAxesAttr(
      OpBuilder(op).getArrayAttr(reduce.getAxes().getValue().take_front()));
  return true;
}

static bool doubled(Operation *op, const Subject &) {
  if (!isa<AllReduceOp>(op) ||
      !isa<FloatType>(getElementTypeOrSelf(op->getResult(0).getType())))
    return false;
  wrap(op, [](OpBuilder &builder, Value value) -> Value {
    return arith::AddFOp::create(builder, value.getLoc(), value, value);
  });
  return true;
}

/// Reduced once more: what is whole already counts once a rank.
static bool reducedTwice(Operation *op, const Subject &) {
  auto reduce = dyn_cast<AllReduceOp>(op);
  if (!reduce || reduce.getKind() != ReductionKind::Sum)
    return false;
  wrap(op, [&](OpBuilder &builder, Value value) -> Value {
    auto again = cast<AllReduceOp>(builder.clone(*op));
    again.getInputMutable().assign(value);
    return again.getResult();
  });
  return true;
}

static bool startAtZero(Operation *op, const Subject &) {
  if (!isa<PartStartOp>(op) || op->use_empty())
    return false;
  OpBuilder builder(op);
  replace(op, arith::ConstantIndexOp::create(builder, op->getLoc(), 0));
  return true;
}

/// Each rank takes the part of its neighbour on another axis.
static bool startOnOtherAxis(Operation *op, const Subject &subject) {
  return isa<PartStartOp>(op) && !op->use_empty() &&
         swapAxis(op, "axes", subject);
}

static bool sliceOnOtherAxis(Operation *op, const Subject &subject) {
  return isa<SliceOp>(op) && !isZero(op->getOperand(0)) &&
         swapAxis(op, "axes", subject);
}

static bool reduceOverOtherAxis(Operation *op, const Subject &subject) {
  return isa<AllReduceOp>(op) && swapAxis(op, "axes", subject);
}

static bool gradientLost(Operation *op, const Subject &) {
  if (!isa<AccumulateOp>(op))
    return false;
  op->erase();
  return true;
}

static bool gradientTwice(Operation *op, const Subject &) {
  if (!isa<AccumulateOp>(op))
    return false;
  OpBuilder(op).clone(*op);
  return true;
}

static bool updateLost(Operation *op, const Subject &) {
  // A gradient that was whole before is stored as it was.
  auto store = dyn_cast<StoreOp>(op);
  if (!store || store.getSlot() == "grad")
    return false;
  op->erase();
  return true;
}

/// Every layer drops the same elements.
static bool oneStream(Operation *op, const Subject &) {
  auto dropout = dyn_cast<nn::DropoutOp>(op);
  if (!dropout || !dropout.getStream())
    return false;
  OpBuilder builder(op);
  Value zero = arith::ConstantIndexOp::create(builder, op->getLoc(), 0);
  dropout.getStreamMutable().assign(zero);
  return true;
}

/// Two values saved or sent in each other's place.
static bool valuesSwapped(Operation *op, const Subject &) {
  if (!isa<YieldOp>(op))
    return false;
  for (unsigned i = 0; i + 1 < op->getNumOperands(); ++i) {
    Value a = op->getOperand(i), b = op->getOperand(i + 1);
    if (a == b || a.getType() != b.getType() || isZero(a))
      continue;
    op->setOperand(i, b);
    op->setOperand(i + 1, a);
    return true;
  }
  return false;
}

/// The batch's parts in another order in one input than in the others.
static bool inputReordered(Operation *op, const Subject &) {
  auto role = dyn_cast<RoleOp>(op);
  auto shardings = op->getAttrOfType<ArrayAttr>("input_shardings");
  if (!role || !shardings || shardings.size() < 2 ||
      (role.getForward().getArgument(0).use_empty() &&
       role.getBackward().getArgument(0).use_empty()))
    return false;
  auto first = cast<ShardingAttr>(shardings[0]);
  SmallVector<DimShardingAttr> dims(first.getDims());
  SmallVector<StringAttr> axes(llvm::reverse(dims[0].getAxes()));
  if (axes.size() < 2)
    return false;
  MLIRContext *context = op->getContext();
  dims[0] = DimShardingAttr::get(context, axes, dims[0].getGrain());
  SmallVector<Attribute> all(shardings.begin(), shardings.end());
  all[0] = ShardingAttr::get(context, dims, ReductionKind::Sum,
                             ArrayRef<StringAttr>{});
  op->setAttr("input_shardings", ArrayAttr::get(context, all));
  return true;
}

static std::vector<Mutation> mutations() {
  return {
      {"all_reduce dropped", AllReduceOp::getOperationName(),
       dropped<AllReduceOp>()},
      {"all_reduce takes the maximum", AllReduceOp::getOperationName(),
       reduceByMax},
      {"all_reduce over fewer axes", AllReduceOp::getOperationName(),
       reduceLess},
      {"all_reduce over another axis", AllReduceOp::getOperationName(),
       reduceOverOtherAxis},
      {"all_reduce twice", AllReduceOp::getOperationName(), reducedTwice},
      {"all_reduce scaled", AllReduceOp::getOperationName(), doubled},
      {"all_gather keeps its own part", AllGatherOp::getOperationName(),
       keepOwnPart},
      {"reduce_scatter adds nothing", ReduceScatterOp::getOperationName(),
       scatterOnly},
      {"own dropped", OwnOp::getOperationName(), dropped<OwnOp>()},
      {"slice on another axis", SliceOp::getOperationName(), sliceOnOtherAxis},
      {"part_start is zero", PartStartOp::getOperationName(), startAtZero},
      {"part_start on another axis", PartStartOp::getOperationName(),
       startOnOtherAxis},
      {"gradient lost", AccumulateOp::getOperationName(), gradientLost},
      {"gradient counted twice", AccumulateOp::getOperationName(),
       gradientTwice},
      {"update lost", StoreOp::getOperationName(), updateLost},
      {"one random stream for all layers", nn::DropoutOp::getOperationName(),
       oneStream},
      {"values swapped between regions", YieldOp::getOperationName(),
       valuesSwapped},
      {"an input's parts reordered", RoleOp::getOperationName(),
       inputReordered},
  };
}

//===----------------------------------------------------------------------===//
// Subjects
//===----------------------------------------------------------------------===//

namespace {

class MutationTest : public ::testing::Test {
protected:
  /// Prepares and partitions; `pins` are constraints in the text already.
  Subject subject(const std::string &name, const std::string &text,
                  const Plan &plan, const std::string &axis,
                  const std::string &other);
  std::vector<Subject> subjects();
  /// True where the broken module does not verify, run or compare equal.
  bool killed(ModuleOp module, const Subject &subject);

  Context context;
};

} // namespace

Subject MutationTest::subject(const std::string &name, const std::string &text,
                              const Plan &plan, const std::string &axis,
                              const std::string &other) {
  Subject result;
  result.name = name;
  result.axis = axis;
  result.other = other;
  std::string error;
  result.prepared = prepare(context.mlir, text, error);
  EXPECT_TRUE(result.prepared) << error;
  auto whole = runWhole<Zp>(*result.prepared, 11);
  EXPECT_TRUE(succeeded(whole));
  result.whole = std::move(*whole);
  result.staged = pinned(*result.prepared, plan, {});
  EXPECT_TRUE(succeeded(shard(*result.staged, plan)));
  EXPECT_TRUE(succeeded(stage(*result.staged, plan)));
  return result;
}

/// Partial sums with biases, gathers, slices and scatters.
static const char *const layoutsText = R"mlir(
  parc.param @x : tensor<8x6xf32> {sharding = #parc.sharding<[{"a"}, {} ]>}
  parc.param @w : tensor<4x6xf32> {sharding = #parc.sharding<[{"a"}, {"b"} ]>}
  parc.param @v : tensor<6x4xf32> {sharding = #parc.sharding<[{}, {"a"} ]>}
  parc.param @c : tensor<6xf32>
  parc.param @b : tensor<4xf32>
  parc.param @r : tensor<8x6xf32> {sharding = #parc.sharding<[{}, {"b"} ]>}
  parc.step @train inputs [] micro {
    %zero = arith.constant dense<0.0> : tensor<f32>
    %x = parc.load @x : tensor<8x6xf32>
    %w = parc.load @w : tensor<4x6xf32>
    %v = parc.load @v : tensor<6x4xf32>
    %c = parc.load @c : tensor<6xf32>
    %b = parc.load @b : tensor<4xf32>
    %r = parc.load @r : tensor<8x6xf32>
    %h0 = nn.linear %x, %w : tensor<8x6xf32>, tensor<4x6xf32> -> tensor<8x4xf32>
    %h1 = nn.bias_add %h0, %b : tensor<8x4xf32>, tensor<4xf32>
    %h2 = nn.gelu %h1 : tensor<8x4xf32>
    %h = parc.constraint %h2, <[{}, {"a"}]> : tensor<8x4xf32>
    %y0 = nn.linear %h, %v : tensor<8x4xf32>, tensor<6x4xf32> -> tensor<8x6xf32>
    %y1 = nn.bias_add %y0, %c : tensor<8x6xf32>, tensor<6xf32>
    %y2 = arith.addf %y1, %x : tensor<8x6xf32>
    %y3 = parc.constraint %y2, <[{"b"}, {}]> : tensor<8x6xf32>
    %y = nn.silu %y3 : tensor<8x6xf32>
    %p = arith.mulf %y, %r : tensor<8x6xf32>
    %l = linalg.reduce { arith.addf } ins(%p : tensor<8x6xf32>) outs(%zero : tensor<f32>) dimensions = [0, 1]
    %n = arith.constant dense<3.0> : tensor<f32>
    parc.yield %l, %n : tensor<f32>, tensor<f32>
  } update {}
)mlir";

std::vector<Subject> MutationTest::subjects() {
  std::vector<Subject> list;
  Plan stages = {{{"tp", 2}, {"pp", 2}, {"dp", 2}}, 2, "1f1b", true};
  list.push_back(
      subject("three layers on 2x2x2", stackModelText(), stages, "tp", "dp"));
  Plan layouts = {{{"a", 2}, {"b", 2}}, 1, "1f1b", false};
  list.push_back(subject("layouts on 2x2", layoutsText, layouts, "a", "b"));
  return list;
}

bool MutationTest::killed(ModuleOp module, const Subject &subject) {
  Errors errors(context.mlir);
  if (failed(verify(module)) || failed(decompose(module)))
    return true;
  return !compare(module, subject.whole).empty();
}

//===----------------------------------------------------------------------===//
// Test
//===----------------------------------------------------------------------===//

/// True for an op that waits for the same op of other roles: those are broken
/// in all roles, lest it be a missing partner that is noticed.
static bool spansStages(Operation *op) {
  auto reduce = dyn_cast<AllReduceOp>(op);
  return reduce && llvm::is_contained(reduce.getAxes(),
                                      StringAttr::get(op->getContext(), "pp"));
}

/// Sets of ops to be broken together, as indices of a walk.
static std::vector<SmallVector<unsigned>> groupsOf(ModuleOp module) {
  std::vector<SmallVector<unsigned>> groups;
  llvm::MapVector<unsigned, SmallVector<unsigned>> spanning;
  RoleOp role;
  unsigned ordinal = 0;
  for (auto [index, op] : llvm::enumerate(opsOf(module))) {
    if (auto next = dyn_cast<RoleOp>(op)) {
      role = next;
      ordinal = 0;
    }
    if (spansStages(op))
      spanning[ordinal++].push_back(index);
    else
      groups.push_back({static_cast<unsigned>(index)});
  }
  for (auto &entry : spanning)
    groups.push_back(std::move(entry.second));
  return groups;
}

TEST_F(MutationTest, EveryWrongProgramIsSeen) {
  std::vector<Subject> all = subjects();
  for (Subject &subject : all) {
    OwningOpRef<ModuleOp> clone(subject.staged->clone());
    ASSERT_TRUE(succeeded(decompose(*clone)));
    ASSERT_EQ(compare(*clone, subject.whole), "") << subject.name;
  }
  for (const Mutation &mutation : mutations()) {
    unsigned made = 0, seen = 0;
    for (Subject &subject : all) {
      // Twelve of a kind in a subject are enough.
      unsigned left = 12;
      std::vector<Operation *> ops = opsOf(*subject.staged);
      for (const auto &group : groupsOf(*subject.staged)) {
        Operation *original = ops[group.front()];
        if (left == 0 || original->getName().getStringRef() != mutation.op)
          continue;
        OwningOpRef<ModuleOp> clone(subject.staged->clone());
        std::vector<Operation *> copies = opsOf(*clone);
        if (!llvm::all_of(group, [&](unsigned index) {
              return mutation.apply(copies[index], subject);
            }))
          continue;
        ++made;
        --left;
        bool dead = killed(*clone, subject);
        seen += dead;
        EXPECT_TRUE(dead) << mutation.name << " survives in " << subject.name
                          << " at " << describe(original);
      }
    }
    llvm::outs() << mutation.name << ": " << seen << " of " << made
                 << " seen\n";
    EXPECT_GT(made, 0u) << mutation.name << " never applies";
  }
}
