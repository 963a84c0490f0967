//===- Streams.cpp - Starts and waits in C++ ------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A start is its collectives between Context::start and Context::finish. What
/// a group reads lives until its wait; what goes to slots is held by the
/// context until the stream is waited for.
///
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::cpp;

bool cpp::isCollective(Operation *op) {
  return isa<rt::AllReduceOp, rt::AllGatherOp, rt::ReduceScatterOp,
             rt::AllToAllOp, rt::ShiftOp>(op);
}

rt::WaitOp cpp::waitOf(rt::StartOp start) {
  return start.getNumResults() > 0
             ? cast<rt::WaitOp>(*start.getPending()[0].user_begin())
             : nullptr;
}

/// One collective is a call, several are a group.
static bool isGroup(rt::StartOp op) {
  size_t count = 0;
  bool loops = false;
  op.getBody().walk([&](Operation *inner) {
    count += isCollective(inner);
    loops |= isa<rt::StackOp>(inner);
  });
  return loops || count > 1;
}

llvm::SetVector<Value> cpp::readByStart(rt::StartOp op) {
  llvm::SetVector<Value> values;
  op.getBody().walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (!op.getBody().isAncestor(operand.getParentRegion()))
        values.insert(operand);
  });
  return values;
}

std::string BodyPrinter::storedTo(Operation &op) {
  if (!isa<rt::AllReduceOp, rt::ReduceScatterOp>(op) ||
      !op.getParentOfType<rt::StartOp>() || !op.getResult(0).hasOneUse())
    return "";
  auto store = dyn_cast<rt::StoreOp>(*op.getResult(0).user_begin());
  if (!store || store->getBlock() != op.getBlock())
    return "";
  done.insert(store);
  return "c.slot(" + slotArguments(store.getParam(), store.getSlot()) + ")";
}

/// From Context::start to the end of the group.
LogicalResult BodyPrinter::printStartBody(rt::StartOp op) {
  bool open = isGroup(op);
  os << indent << "c.start(" << file.names.stream(op.getStream())
     << (open ? ", /*group=*/true" : "") << ");\n";
  for (Operation &inner : op.getBlock()->without_terminator()) {
    // Results are there when the group has ended.
    if (open && isa<rt::StoreOp, rt::AccumulateOp>(inner) &&
        !done.contains(&inner)) {
      os << indent << "c.endGroup();\n";
      open = false;
    }
    if (failed(printOp(inner)))
      return failure();
  }
  if (open)
    os << indent << "c.endGroup();\n";
  return success();
}

LogicalResult BodyPrinter::printStart(rt::StartOp op) {
  if (op.getAhead()) {
    const AheadNames &ahead = file.ahead.at(op);
    std::string ready = scope.take("ready");
    os << indent << ahead.type << ' ' << ready << " = std::move("
       << ahead.variable << ");\n"
       << indent << "if (" << nextLayer << " >= 0)\n"
       << indent << "  " << ahead.function << "(c, " << nextLayer << ", "
       << ahead.variable;
    for (Value value : ahead.outside)
      os << ", " << get(value);
    os << ");\n";
    tickets[op] = ready + ".ticket";
    for (auto [pending, field] : llvm::zip(op.getPending(), ahead.fields))
      names[pending] = ready + "." + field;
    return success();
  }
  if (failed(printStartBody(op)))
    return failure();
  auto yield = cast<rt::YieldOp>(op.getBlock()->getTerminator());
  if (op.getNumResults() > 0) {
    std::string ticket = scope.take("ticket");
    tickets[op] = ticket;
    os << indent << "const Ticket " << ticket << " = c.finish();\n";
    for (auto [pending, value] : llvm::zip(op.getPending(), yield.getValues()))
      names[pending] = get(value);
    return success();
  }
  std::string held;
  auto hold = [&](Value value) {
    if (isa<RankedTensorType>(value.getType()) && owned.contains(value))
      held += (held.empty() ? "" : ", ") + get(value);
  };
  for (Value value : readByStart(op))
    hold(value);
  for (Operation &inner : *op.getBlock())
    for (Value result : inner.getResults())
      if (isCollective(&inner))
        hold(result);
  if (!held.empty())
    os << indent << "c.hold(" << held << ");\n";
  os << indent << "c.detach();\n";
  return success();
}

void BodyPrinter::printWait(rt::WaitOp op) {
  if (auto stream = op.getStream()) {
    os << indent << "c.waitFor(" << file.names.stream(*stream) << ");\n";
    return;
  }
  auto start = op.getPending()[0].getDefiningOp<rt::StartOp>();
  os << indent << "c.wait(" << tickets.lookup(start) << ");\n";
  for (auto [pending, result] : llvm::zip(op.getPending(), op.getOutputs())) {
    names[result] = names.lookup(pending);
    own(result);
  }
}

LogicalResult BodyPrinter::printLastMicro(rt::LastMicroOp op) {
  os << indent << "if (c.lastMicroBatch()) {\n";
  indent += "  ";
  for (Operation &inner : op.getBlock()->without_terminator())
    if (failed(printOp(inner)))
      return failure();
  indent.resize(indent.size() - 2);
  os << indent << "}\n";
  return success();
}

LogicalResult BodyPrinter::printAhead(rt::StartOp op, StringRef stack) {
  AheadNames &ahead = file.ahead[op];
  ahead.function = file.functions.take(stack.str() + "_ahead");
  ahead.type = file.functions.take(ahead.function + "_values");
  BodyPrinter body(file, "layer");
  std::string parameters =
      "Context &c, int64_t layer, " + ahead.type + " &started";
  body.scope.take("started");
  for (Value value : readByStart(op)) {
    auto constant = value.getDefiningOp<arith::ConstantOp>();
    if (constant && !isa<RankedTensorType>(value.getType()))
      continue;
    ahead.outside.push_back(value);
    parameters += isa<RankedTensorType>(value.getType())
                      ? ", const " + type(value) + " &"
                      : ", " + scalarType(value.getType()) + " ";
    parameters += body.declare(value, get(value));
  }
  if (failed(body.printStartBody(op)))
    return failure();
  auto yield = cast<rt::YieldOp>(op.getBlock()->getTerminator());
  std::string fields;
  body.os << "  started.ticket = c.finish();\n";
  Scope names;
  names.take("ticket");
  for (Value value : yield.getValues()) {
    ahead.fields.push_back(names.take(body.get(value)));
    fields += "  " + type(value) + ' ' + ahead.fields.back() + ";\n";
    body.os << "  started." << ahead.fields.back() << " = " << body.get(value)
            << ";\n";
  }
  file.bodies += "\n// What a layer of " + comment(stack) +
                 " gathers, while the one before computes.\nstruct " +
                 ahead.type + " {\n  Ticket ticket;\n" + fields +
                 "};\n\nstatic void " + ahead.function + "(" + parameters +
                 ") {\n" + body.printed().str() + "}\n";
  return success();
}
