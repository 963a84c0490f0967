//===- OverlapGradients.cpp - Sums of gradients leave the update ----------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// An update that reads a gradient's slot, reduces it and stores the sum to a
/// slot can as well find the sum there. The leading collectives over the axes
/// of data run in the last backward pass; those that follow over other axes
/// run before the update, for all layers as one group; from a collective over
/// stages on, the update keeps them.
///
//===----------------------------------------------------------------------===//

#include "Overlap.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::parc;

namespace {

/// A gradient's way from its slot to the sum that the update uses.
struct Reduction {
  LoadOp load;
  /// Where the update stores the sum, and the slot that has it when the step
  /// ends.
  StoreOp store;
  StringAttr slot;
  SmallVector<Operation *> collectives;
  /// How many of them the last backward pass runs, and how many in all leave
  /// the update.
  size_t early = 0, moved = 0;

  StringAttr param() { return load.getParamAttr().getAttr(); }
};

/// One role's update.
class GradientMover {
public:
  explicit GradientMover(OverlapRole &role) : role(role) {}

  void run();

private:
  void find();
  void add(StoreOp store);
  void divide(Reduction &reduction);
  Operation *anchorOf(Reduction &reduction);
  void placeEarly();
  void placeLate();
  void startEarly(OpBuilder &builder, ArrayRef<Reduction *> reductions,
                  size_t level);
  void startLate(ArrayRef<Reduction *> reductions, size_t level);
  void link(OpBuilder &builder, Reduction &reduction, size_t index);
  void readSlot(Reduction &reduction);

  OverlapRole &role;
  /// By load, in the order of the update.
  llvm::MapVector<Operation *, Reduction> reductions;
};

} // namespace

//===----------------------------------------------------------------------===//
// Finding
//===----------------------------------------------------------------------===//

/// The value that stacks pass on as `value`.
static Value originOf(Value value) {
  for (;;) {
    StackOp stack;
    unsigned number = 0;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      stack = dyn_cast<StackOp>(argument.getOwner()->getParentOp());
      size_t first = stack ? 1 + stack.getCarry().size() : 0;
      if (!stack || argument.getArgNumber() < first)
        return value;
      value = stack.getEach()[argument.getArgNumber() - first];
      continue;
    }
    stack = value.getDefiningOp<StackOp>();
    number = cast<OpResult>(value).getResultNumber();
    if (!stack || !isa<LayersType>(value.getType()))
      return value;
    value = stack.getYield()->getOperand(number);
  }
}

static bool isSum(Operation *op) {
  if (auto reduce = dyn_cast<AllReduceOp>(op))
    return reduce.getKind() == ReductionKind::Sum;
  auto scatter = dyn_cast<ReduceScatterOp>(op);
  return scatter && scatter.getKind() == ReductionKind::Sum &&
         (!scatter.getSize() || canRemake(scatter.getSize()));
}

static bool isOverStages(Operation *op) {
  return llvm::any_of(
      op->getAttrOfType<ArrayAttr>("axes").getAsRange<StringAttr>(),
      [](StringAttr axis) { return axis.getValue() == kStageAxis; });
}

void GradientMover::add(StoreOp store) {
  Reduction reduction;
  reduction.store = store;
  reduction.slot = store.getSlotAttr();
  Value final = originOf(store.getInput()), value = final;
  Operation *def = value.getDefiningOp();
  while (def && !isa<LoadOp>(def)) {
    bool isView = isa<tensor::CollapseShapeOp>(def);
    if ((value != final && !value.hasOneUse()) ||
        (!isView && !(isSum(def) && role.moves(def))))
      return;
    if (!isView) {
      // Between two collectives nothing changes the form.
      if (value.getType() != store.getInput().getType())
        return;
      reduction.collectives.insert(reduction.collectives.begin(), def);
    } else if (reduction.collectives.empty()) {
      return;
    }
    value = def->getOperand(0);
    def = value.getDefiningOp();
  }
  if (!def || reduction.collectives.empty() || !value.hasOneUse())
    return;
  reduction.load = cast<LoadOp>(def);
  if (reduction.load.getParam() != store.getParam())
    return;
  divide(reduction);
  if (reduction.moved > 0)
    reductions.try_emplace(def, std::move(reduction));
}

void GradientMover::divide(Reduction &reduction) {
  ArrayRef<Operation *> ops = reduction.collectives;
  size_t &early = reduction.early, &moved = reduction.moved;
  while (moved < ops.size() && !isOverStages(ops[moved]))
    ++moved;
  while (early < moved && role.isOverData(ops[early]))
    ++early;
  if (early > 0 && !anchorOf(reduction))
    early = 0;
}

void GradientMover::find() {
  SmallVector<StoreOp> stores;
  role.role.getUpdate().walk([&](StoreOp store) {
    if (store.getSlot() != kValueSlot)
      stores.push_back(store);
  });
  for (StoreOp store : stores)
    add(store);
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

/// Collective `index` of a reduction from slot to slot.
void GradientMover::link(OpBuilder &builder, Reduction &reduction,
                         size_t index) {
  Operation *op = reduction.collectives[index];
  IRMapping mapping;
  if (index == 0) {
    remake(builder, op->getOperand(0), mapping);
  } else {
    Value input = op->getOperand(0);
    auto load = LoadOp::create(builder, op->getLoc(), input.getType(),
                               reduction.load.getParamAttr(), reduction.slot);
    mapping.map(input, load.getResult());
  }
  for (Value operand : op->getOperands().drop_front())
    remake(builder, operand, mapping);
  Operation *copy = builder.clone(*op, mapping);
  copy->removeAttr("bucket");
  StoreOp::create(builder, op->getLoc(), reduction.load.getParamAttr(),
                  copy->getResult(0), reduction.slot);
}

/// The update finds the sum in its slot.
void GradientMover::readSlot(Reduction &reduction) {
  Operation *last = reduction.collectives[reduction.moved - 1];
  OpBuilder builder(reduction.load);
  auto load = LoadOp::create(builder, reduction.load.getLoc(),
                             last->getResult(0).getType(),
                             reduction.load.getParamAttr(), reduction.slot);
  last->getResult(0).replaceAllUsesWith(load);
  Operation *op = last;
  while (op->use_empty()) {
    Operation *before =
        op->getNumOperands() > 0 ? op->getOperand(0).getDefiningOp() : nullptr;
    op->erase();
    if (!before)
      break;
    op = before;
  }
}

/// Levels of starts: what follows another collective of its chain is on the
/// same stream after it.
static size_t levels(ArrayRef<Reduction *> reductions, bool early) {
  size_t most = 0;
  for (Reduction *r : reductions)
    most = std::max(most, early ? r->early : r->moved - r->early);
  return most;
}

static llvm::MapVector<Attribute, SmallVector<Reduction *>>
groupsAt(ArrayRef<Reduction *> reductions, size_t level, bool early) {
  llvm::MapVector<Attribute, SmallVector<Reduction *>> groups;
  for (Reduction *r : reductions) {
    size_t at = level + (early ? 0 : r->early);
    if (at < (early ? r->early : r->moved))
      groups[bucketKey(r->collectives[at])].push_back(r);
  }
  return groups;
}

static Location locOf(ArrayRef<Reduction *> reductions) {
  SmallVector<Location> places;
  for (Reduction *r : reductions)
    places.push_back(r->load.getLoc());
  return places.size() == 1
             ? places[0]
             : FusedLoc::get(reductions[0]->load.getContext(), places);
}

void GradientMover::startEarly(OpBuilder &builder,
                               ArrayRef<Reduction *> members, size_t level) {
  for (auto &[key, group] : groupsAt(members, level, true)) {
    auto axes = group[0]->collectives[level]->getAttrOfType<ArrayAttr>("axes");
    StartOp start =
        createStart(builder, locOf(group), role.requireGradientStream(axes));
    OpBuilder body(start.getBlock()->getTerminator());
    for (Reduction *reduction : group)
      link(body, *reduction, level);
  }
}

//===----------------------------------------------------------------------===//
// In the last backward pass
//===----------------------------------------------------------------------===//

/// After what op of the backward region the gradient is final: the terminator
/// of the stack's body for a layer's, an op of the region for others. Null
/// where no such place is.
Operation *GradientMover::anchorOf(Reduction &reduction) {
  Block &backward = role.role.getBackward().front();
  auto stack = reduction.load->getParentOfType<StackOp>();
  Operation *anchor = nullptr;
  bool elsewhere = false;
  role.role.getBackward().walk([&](AccumulateOp op) {
    if (op.getParamAttr() != reduction.load.getParamAttr() ||
        op.getSlot() != reduction.load.getSlot())
      return;
    if (!stack) {
      Operation *here = backward.findAncestorOpInBlock(*op);
      if (!anchor || anchor->isBeforeInBlock(here))
        anchor = here;
      return;
    }
    auto mine = op->getParentOfType<StackOp>();
    Operation *end = mine && mine.getLayers() == stack.getLayers() &&
                             mine->getBlock() == &backward
                         ? mine.getBlock()->getTerminator()
                         : nullptr;
    elsewhere |= !end || (anchor && anchor != end);
    anchor = end;
  });
  return elsewhere ? nullptr : anchor;
}

void GradientMover::placeEarly() {
  Block &backward = role.role.getBackward().front();
  // Of the parameters outside layers those whose gradients are final between
  // the same two stacks go together.
  llvm::MapVector<Operation *, SmallVector<Reduction *>> places;
  DenseMap<Operation *, Operation *> anchors;
  for (auto &[load, reduction] : reductions) {
    if (reduction.early == 0)
      continue;
    Operation *anchor = anchorOf(reduction), *place = anchor;
    while (place->getBlock() == &backward &&
           !place->hasTrait<OpTrait::IsTerminator>() &&
           (place == anchor || !isa<StackOp>(place)))
      place = place->getNextNode();
    places[place].push_back(&reduction);
    Operation *&last = anchors[place];
    if (!last || last->isBeforeInBlock(anchor))
      last = anchor;
  }
  for (auto &[place, members] : places) {
    Operation *anchor = anchors[place];
    OpBuilder builder(anchor);
    if (anchor->getBlock() == &backward)
      builder.setInsertionPointAfter(anchor);
    auto last = LastMicroOp::create(builder, locOf(members));
    OpBuilder body = OpBuilder::atBlockEnd(&last.getBody().emplaceBlock());
    for (size_t level = 0; level < levels(members, true); ++level)
      startEarly(body, members, level);
    YieldOp::create(body, last.getLoc(), ValueRange());
  }
}

//===----------------------------------------------------------------------===//
// Before the update
//===----------------------------------------------------------------------===//

/// One group over all layers.
void GradientMover::startLate(ArrayRef<Reduction *> members, size_t level) {
  Block &update = role.role.getUpdate().front();
  OpBuilder builder = OpBuilder::atBlockBegin(&update);
  for (Operation &op : update) {
    if (!isa<StartOp>(op))
      break;
    builder.setInsertionPointAfter(&op);
  }
  for (auto &[key, group] : groupsAt(members, level, false)) {
    Operation *first = group[0]->collectives[level + group[0]->early];
    StartOp start = createStart(
        builder, locOf(group),
        role.requireGradientStream(first->getAttrOfType<ArrayAttr>("axes")));
    OpBuilder body(start.getBlock()->getTerminator());
    llvm::MapVector<Attribute, SmallVector<Reduction *>> byStack;
    for (Reduction *r : group) {
      auto stack = r->load->getParentOfType<StackOp>();
      byStack[stack ? stack.getLayersAttr() : FlatSymbolRefAttr()].push_back(r);
    }
    for (auto &[layers, reductions] : byStack) {
      OpBuilder inner = body;
      if (layers) {
        auto stack = reductions[0]->load->getParentOfType<StackOp>();
        auto loop = StackOp::create(
            body, stack.getLoc(), TypeRange(), stack.getLayersAttr(),
            stack.getBeginAttr(), stack.getEndAttr(), UnitAttr(),
            builder.getI64IntegerAttr(0), ValueRange(), ValueRange());
        Block &block = loop.getBody().emplaceBlock();
        block.addArgument(builder.getIndexType(), stack.getLoc());
        inner = OpBuilder::atBlockEnd(&block);
        YieldOp::create(inner, stack.getLoc(), ValueRange());
        inner.setInsertionPoint(block.getTerminator());
      }
      for (Reduction *r : reductions)
        link(inner, *r, level + r->early);
    }
  }
}

void GradientMover::placeLate() {
  SmallVector<Reduction *> late;
  for (auto &[load, reduction] : reductions)
    if (reduction.early < reduction.moved)
      late.push_back(&reduction);
  for (size_t level = 0; level < levels(late, false); ++level)
    startLate(late, level);
}

void GradientMover::run() {
  find();
  placeEarly();
  placeLate();
  for (auto &[load, reduction] : reductions) {
    // The sum is in its slot.
    if (reduction.moved == reduction.collectives.size())
      reduction.store.erase();
    readSlot(reduction);
  }
}

void mlir::parc::moveReductions(OverlapRole &role) {
  GradientMover(role).run();
}

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

/// The parameter and slot that an op of the program touches, outside of values.
static std::optional<std::pair<StringAttr, StringAttr>> slotOf(Operation *op) {
  if (!isa<LoadOp, StoreOp, AccumulateOp>(op))
    return std::nullopt;
  return std::pair(op->getAttrOfType<FlatSymbolRefAttr>("param").getAttr(),
                   op->getAttrOfType<StringAttr>("slot"));
}

void mlir::parc::waitForGradients(OverlapRole &role) {
  DenseSet<std::pair<StringAttr, StringAttr>> stored;
  role.role.walk([&](StartOp start) {
    start.walk([&](Operation *op) {
      if (isa<StoreOp, AccumulateOp>(op))
        stored.insert(*slotOf(op));
    });
  });
  if (stored.empty())
    return;
  Block &update = role.role.getUpdate().front();
  Operation *reader = update.getTerminator();
  for (Operation &op : update) {
    if (isa<StartOp>(op))
      continue;
    bool touches = op.walk([&](Operation *inner) {
                       auto slot = slotOf(inner);
                       return slot && stored.contains(*slot)
                                  ? WalkResult::interrupt()
                                  : WalkResult::advance();
                     }).wasInterrupted();
    if (!touches)
      continue;
    reader = &op;
    break;
  }
  OpBuilder builder(reader);
  WaitOp::create(builder, role.role.getLoc(), TypeRange(), role.gradientStream,
                 ValueRange());
}
