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

#include "Model.h"
#include "Mutations.h"
#include "NN/NN.h"
#include "OpCases.h"
#include "mlir/IR/Verifier.h"
#include "parc/Analysis/OpLayout.h"
#include "llvm/ADT/MapVector.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::equiv;

//===----------------------------------------------------------------------===//
// Mutations
//===----------------------------------------------------------------------===//

template <class Op> static Break dropped() {
  return [](Operation *op, const Subject &) {
    auto found = dyn_cast<Op>(op);
    if (!found || found->use_empty() ||
        found.getResult().getType() != found->getOperand(0).getType())
      return false;
    replaceOp(op, found->getOperand(0));
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
  replaceOp(op, tensor::InsertSliceOp::create(builder, loc, gather.getInput(),
                                              zero, offsets, sizes, strides));
  return true;
}

/// A reduce-scatter that keeps its part but adds nothing.
static bool scatterOnly(Operation *op, const Subject &) {
  auto scatter = dyn_cast<ReduceScatterOp>(op);
  if (!scatter)
    return false;
  OpBuilder builder(op);
  replaceOp(op, SliceOp::create(builder, op->getLoc(), scatter.getType(),
                                scatter.getInput(), scatter.getDimAttr(),
                                scatter.getExtentAttr(), scatter.getGrainAttr(),
                                scatter.getAxesAttr(), scatter.getOuterAttr()));
  return true;
}

/// The maximum would not do: where all addends but one are zero, as in an
/// embedding over a split vocabulary, it is the sum in exact arithmetic.
static bool reduceByMin(Operation *op, const Subject &) {
  auto reduce = dyn_cast<AllReduceOp>(op);
  if (!reduce || reduce.getKind() != ReductionKind::Sum)
    return false;
  reduce.setKind(ReductionKind::Min);
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
  wrapResult(op, [](OpBuilder &builder, Value value) -> Value {
    return arith::AddFOp::create(builder, value.getLoc(), value, value);
  });
  return true;
}

/// Reduced once more: what is whole already counts once a rank.
static bool reducedTwice(Operation *op, const Subject &) {
  auto reduce = dyn_cast<AllReduceOp>(op);
  if (!reduce || reduce.getKind() != ReductionKind::Sum)
    return false;
  wrapResult(op, [&](OpBuilder &builder, Value value) -> Value {
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
  replaceOp(op, arith::ConstantIndexOp::create(builder, op->getLoc(), 0));
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
  std::vector<Mutation> list = {
      {"all_reduce dropped", AllReduceOp::getOperationName(),
       dropped<AllReduceOp>()},
      {"all_reduce takes the minimum", AllReduceOp::getOperationName(),
       reduceByMin},
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
  for (const auto &more : {partMutations(), stateMutations()})
    list.insert(list.end(), more.begin(), more.end());
  return list;
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
  /// The same for a module that is prepared.
  Subject subject(const std::string &name, OwningOpRef<ModuleOp> prepared,
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
  std::string error;
  auto prepared = prepare(context.mlir, text, error);
  EXPECT_TRUE(prepared) << error;
  return subject(name, std::move(prepared), plan, axis, other);
}

Subject MutationTest::subject(const std::string &name,
                              OwningOpRef<ModuleOp> prepared, const Plan &plan,
                              const std::string &axis,
                              const std::string &other) {
  Subject result;
  result.name = name;
  result.axis = axis;
  result.other = other;
  result.prepared = std::move(prepared);
  if (!result.prepared)
    return result;
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
    %h = parc.constraint %h2 : tensor<8x4xf32> to #parc.sharding<[{}, {"a"}]>
    %y0 = nn.linear %h, %v : tensor<8x4xf32>, tensor<6x4xf32> -> tensor<8x6xf32>
    %y1 = nn.bias_add %y0, %c : tensor<8x6xf32>, tensor<6xf32>
    %g = nn.silu %x : tensor<8x6xf32>
    %y2 = arith.addf %y1, %g : tensor<8x6xf32>
    %y3 = parc.constraint %y2 : tensor<8x6xf32> to #parc.sharding<[{"b"}, {}]>
    %y = nn.silu %y3 : tensor<8x6xf32>
    %p = arith.mulf %y, %r : tensor<8x6xf32>
    %l = linalg.reduce { arith.addf } ins(%p : tensor<8x6xf32>) outs(%zero : tensor<f32>) dimensions = [0, 1]
    %n = arith.constant dense<3.0> : tensor<f32>
    parc.yield %l, %n : tensor<f32>, tensor<f32>
  } update {}
)mlir";

/// Four experts, two of them a token; two key heads for four heads.
static const char *const expertsConfig = R"({
  "model_type": "mixtral", "hidden_size": 4, "intermediate_size": 4,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "head_dim": 2, "num_local_experts": 4, "num_experts_per_tok": 2,
  "vocab_size": 11, "max_position_embeddings": 64, "rms_norm_eps": 1e-6,
  "rope_theta": 10000.0
})";

std::vector<Subject> MutationTest::subjects() {
  std::vector<Subject> list;
  Plan stages = {{{"tp", 2}, {"pp", 2}, {"dp", 2}}, 2, "1f1b", true};
  list.push_back(
      subject("three layers on 2x2x2", stackModelText(), stages, "tp", "dp"));
  Plan layouts = {{{"a", 2}, {"b", 2}}, 1, "1f1b", false};
  list.push_back(subject("layouts on 2x2", layoutsText, layouts, "a", "b"));
  auto imported = [&](int64_t batch, int64_t sequence) {
    OwningOpRef<ModuleOp> module =
        importedModel(context.mlir, expertsConfig, batch, sequence);
    EXPECT_TRUE(module);
    return prepare(std::move(module));
  };
  Plan experts = {{{"tp", 2}, {"cp", 2}, {"dp", 2}}, 1, "1f1b", true};
  experts.options.sequenceParallel = true;
  experts.options.expertAxes = {"cp"};
  list.push_back(
      subject("experts on 2x2x2", imported(4, 8), experts, "tp", "cp"));
  // Two ranks a key head.
  Plan heads = {{{"tp", 4}, {"cp", 2}}, 1, "1f1b", true};
  list.push_back(subject("four ranks, two key heads", imported(1, 8), heads,
                         "tp.1", "cp"));
  Plan exchange = {{{"cp", 2}, {"dp", 2}}, 2, "1f1b", true};
  exchange.options.contextKind = ContextKind::Ulysses;
  exchange.options.expertAxes = {"dp", "cp"};
  list.push_back(
      subject("exchanged heads on 2x2", imported(4, 8), exchange, "cp", "dp"));
  Plan flat = {{{"tp", 2}, {"dp", 2}}, 2, "1f1b", true};
  flat.zero = 2;
  list.push_back(subject("ZeRO 2 on 2x2", stackModelText(), flat, "tp", "dp"));
  Plan gathered = {{{"cp", 2}, {"dp", 2}}, 1, "1f1b", true};
  list.push_back(
      subject("gathered keys on 2x2", imported(4, 8), gathered, "cp", "dp"));
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

/// True for the number of a rank among two that share flat state. It says how
/// long the rank's part is, and both parts may be equally long.
static bool isMoot(Operation *op, const Subject &subject) {
  auto start = dyn_cast<PartStartOp>(op);
  return start && start.getExtent() == 2 &&
         StringRef(subject.name).starts_with("ZeRO");
}

static std::string printed(Operation *op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  op->print(os, OpPrintingFlags().skipRegions());
  return text;
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
    ASSERT_TRUE(subject.staged) << subject.name;
    OwningOpRef<ModuleOp> clone(subject.staged->clone());
    ASSERT_TRUE(succeeded(decompose(*clone)));
    ASSERT_EQ(compare(*clone, subject.whole), "") << subject.name;
  }
  for (const Mutation &mutation : mutations()) {
    unsigned made = 0, seen = 0;
    for (Subject &subject : all) {
      // Eight of a kind in a subject are enough.
      unsigned left = 8;
      std::vector<Operation *> ops = opsOf(*subject.staged);
      for (const auto &group : groupsOf(*subject.staged)) {
        Operation *original = ops[group.front()];
        if (left == 0 || original->getName().getStringRef() != mutation.op ||
            isMoot(original, subject))
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
                          << " at " << describe(original) << ": "
                          << printed(original);
      }
    }
    llvm::outs() << mutation.name << ": " << seen << " of " << made
                 << " seen\n";
    EXPECT_GT(made, 0u) << mutation.name << " never applies";
  }
}
