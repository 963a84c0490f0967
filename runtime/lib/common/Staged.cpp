//===- Staged.cpp - Runs the stages of a generated program ----------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The worker: inputs, events, transfers, update, and the boxes of what is
/// loaded and saved.
///
//===----------------------------------------------------------------------===//

#include "parc/staged.h"

#include "parc/random.h"
#include "parc/tokens.h"

#include <cmath>
#include <cstring>

namespace parc {

Stage::~Stage() = default;

namespace {

constexpr const char *RowHole = "{i}";

/// The checkpoint's name of one layer, without the row's number.
std::string checkpointName(const ParamRow &row, int64_t layer) {
  std::string name = row.checkpoint;
  size_t at = name.find("{}");
  if (row.layers && at != std::string::npos)
    name.replace(at, 2,
                 std::to_string(row.layerBase + layer * row.layerStride));
  return name;
}

/// Whether each row is a tensor of its own.
bool hasRowTensors(const std::string &name) {
  return name.find(RowHole) != std::string::npos;
}

std::string rowName(std::string name, int64_t row) {
  return name.replace(name.find(RowHole), std::strlen(RowHole),
                      std::to_string(row));
}

/// The box, or one box a row where each row is a tensor of its own.
void addPieces(const Piece &box, size_t width, std::vector<Piece> &to) {
  if (!hasRowTensors(box.name)) {
    to.push_back(box);
    return;
  }
  size_t bytes = width;
  for (size_t d = 1; d < box.size.size(); ++d)
    bytes *= size_t(box.size[d]);
  for (int64_t i = 0; i < box.size[0]; ++i) {
    Piece row = box;
    row.name = rowName(box.name, box.lo[0] + i);
    row.lo.erase(row.lo.begin());
    row.size.erase(row.size.begin());
    row.data = static_cast<char *>(box.data) + size_t(i) * bytes;
    to.push_back(std::move(row));
  }
}

/// A number of the type as bytes, for scalars and from results.
void writeNumber(DType type, double number, void *to) {
  dispatch(type, [&](auto zero) {
    using T = decltype(zero);
    T value{};
    if constexpr (std::is_same_v<T, Zp>)
      value = Zp::fromDouble(number);
    else
      value = T(number);
    std::memcpy(to, &value, sizeof(T));
  });
}

double readNumber(DType type, const void *from) {
  double result = 0;
  dispatch(type, [&](auto zero) {
    using T = decltype(zero);
    T value{};
    std::memcpy(&value, from, sizeof(T));
    if constexpr (!std::is_same_v<T, Zp>)
      result = double(value);
  });
  return result;
}

/// One rank's part of the program.
class StagedWorker : public Worker {
public:
  StagedWorker(Rank &r, const Tables &tables, const MakeStage *roles)
      : context(r, tables), tables(tables) {
    context.createGroups();
    r.create_streams(tables.numStreams);
    const StageRow &row = tables.stages[context.stage()];
    stage = roles[row.role]();
    used = stage->parameters();
    for (int param : used)
      context.allocate(param, layersOf(param));
    inFlight = std::max<int64_t>(row.inFlight, 1);
    stage->prepare(context, inFlight);
    inputs.resize(size_t(inFlight));
  }

  std::vector<Piece> parameters() override {
    return pieces([&](int param) { return heldSlot(param); });
  }
  std::vector<Piece> copies() override {
    return pieces([&](int param) { return heldSlot(param) ? 0 : -1; });
  }
  std::vector<Piece> gradients() override;
  StepResult step(const StepInput &input, const Hyper &hyper) override;

private:
  /// Values under way, by direction, and when they have arrived.
  struct Mail {
    Values direction[2];
    Ticket ticket[2];
  };

  LayerRange layersOf(int param) const {
    const ParamRow &row = tables.params[param];
    return row.layers ? context.layers(row.stack, 0, row.layers)
                      : LayerRange{0, 1};
  }
  /// The slot that an update changes: the value or its master.
  int heldSlot(int param) const {
    return tables.params[param].hasMaster() && tables.masterSlot >= 0
               ? tables.masterSlot
               : 0;
  }
  /// This rank's pieces of the slot that \p slotOf names, -1 for none.
  template <class F> std::vector<Piece> pieces(F slotOf) {
    std::vector<Piece> result;
    forEachLayer([&](int param, int64_t layer) {
      int slot = slotOf(param);
      if (slot >= 0)
        addPieces(param, layer, slot,
                  static_cast<char *>(context.slot(param, layer, slot).data),
                  result);
    });
    return result;
  }
  /// Calls \p body for every parameter of this rank, and each layer of it.
  template <class F> void forEachLayer(F body) const {
    for (int param : used) {
      LayerRange range = layersOf(param);
      for (int64_t layer = range.begin; layer < range.end; ++layer)
        body(param, layer);
    }
  }
  bool isOwner(const ParamRow &row, int slot) const;
  int gradSlotOf(int param) const;
  void addPieces(int param, int64_t layer, int slot, char *data,
                 std::vector<Piece> &result);
  AnyValue makeInput(const InputRow &row, const StepInput &input);
  void runPass(bool forward, int64_t microBatch, const StepInput &input);
  void transfer(const EventRow *events, int count, const LoopRow &loop,
                int64_t iteration);
  StepResult update(const StepInput &input, const Hyper &hyper);

  Context context;
  const Tables &tables;
  std::unique_ptr<Stage> stage;
  std::vector<int> used;
  int64_t inFlight = 1;
  std::vector<Values> inputs; ///< A slot's.
  void dropSent(int direction);

  Mail received, sent;
  Mail leaving; ///< Sent, but perhaps not taken yet.
  int64_t backwardPasses = 0;
  Values sums, scalars, results, scaledGradients;
  int64_t validLabels = 0;
};

//===----------------------------------------------------------------------===//
// Boxes
//===----------------------------------------------------------------------===//

static bool contains(const AxisList &list, int axis) {
  return std::find(list.axes, list.axes + list.count, axis) !=
         list.axes + list.count;
}

bool StagedWorker::isOwner(const ParamRow &row, int slot) const {
  for (int axis = 0; axis < tables.numAxes; ++axis) {
    if (axis == tables.stageAxis)
      continue;
    bool splits = row.isFlat(slot) && contains(row.flat, axis);
    for (int d = 0; d < row.rank; ++d)
      splits |= contains(row.dims[d].axes, axis);
    AxisList only;
    only.count = 1;
    only.axes[0] = axis;
    if (!splits && context.coordinate(only) != 0)
      return false;
  }
  return row.layers || context.stage() == row.firstStage;
}

/// The boxes that this rank's part of a slot consists of.
void StagedWorker::addPieces(int param, int64_t layer, int slot, char *data,
                             std::vector<Piece> &result) {
  const ParamRow &row = tables.params[param];
  std::vector<int64_t> sizes;
  int64_t elements = 1;
  for (int d = 0; d < row.rank; ++d) {
    const DimRow &dim = row.dims[d];
    sizes.push_back(context.part_size(dim.axes, dim.size, dim.grain));
    elements *= sizes.back();
  }
  auto [first, count] = context.piece(param, slot, elements);
  std::vector<ListBox> boxes =
      row.isFlat(slot)
          ? listBoxes(sizes, first, count)
          : std::vector<ListBox>{
                {std::vector<int64_t>(size_t(row.rank), 0), sizes, 0}};
  for (const ListBox &box : boxes) {
    Piece piece;
    piece.name = checkpointName(row, layer);
    for (int d = 0; d < row.rank; ++d) {
      const DimRow &dim = row.dims[d];
      piece.lo.push_back(row.offsets[d] +
                         context.part_start(dim.axes, dim.size, dim.grain) +
                         box.lo[size_t(d)]);
      piece.size.push_back(box.size[size_t(d)]);
    }
    piece.owner = isOwner(row, slot);
    piece.type = context.slotType(row, slot);
    piece.data = data + size_t(box.offset) * sizeOf(piece.type);
    ::parc::addPieces(piece, sizeOf(piece.type), result);
  }
}

/// Where the sum over ranks of the gradient is.
int StagedWorker::gradSlotOf(int param) const {
  const ParamRow &row = tables.params[param];
  bool apart = tables.reducedSlot >= 0 && row.isFlat(tables.reducedSlot) &&
               !row.isFlat(tables.gradSlot);
  return apart ? tables.reducedSlot : tables.gradSlot;
}

/// What is saved is the gradient of the mean; the slot holds the sum's.
std::vector<Piece> StagedWorker::gradients() {
  scaledGradients.clear();
  std::vector<Piece> result;
  double perLabel = validLabels ? 1.0 / double(validLabels) : 1.0;
  forEachLayer([&](int param, int64_t layer) {
    if (!tables.params[param].trained)
      return;
    int slot = gradSlotOf(param);
    AnyView view = context.slot(param, layer, slot);
    AnyValue copy = context.like(view);
    std::vector<char> host(copy.bytes());
    context.r.toHost(host.data(), view.data, host.size());
    for (int64_t i = 0; i < view.size(); ++i) {
      char *at = host.data() + size_t(i) * sizeOf(view.type);
      writeNumber(view.type, readNumber(view.type, at) * perLabel, at);
    }
    context.r.toDevice(copy.data(), host.data(), host.size());
    addPieces(param, layer, slot, static_cast<char *>(copy.data()), result);
    scaledGradients.push_back(std::move(copy));
  });
  return result;
}

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

AnyValue StagedWorker::makeInput(const InputRow &row, const StepInput &input) {
  int64_t lo[MaxRank] = {}, sizes[MaxRank] = {}, count = 1;
  for (int d = 0; d < row.rank; ++d) {
    const DimRow &dim = row.dims[d];
    lo[d] = context.part_start(dim.axes, dim.size, dim.grain);
    sizes[d] = context.part_size(dim.axes, dim.size, dim.grain);
    count *= sizes[d];
  }
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::string name = row.name;
  for (int64_t i = 0; i < count; ++i) {
    int64_t column = row.rank > 1 ? lo[1] + i % sizes[1] : 0;
    int64_t line = row.rank > 1 ? lo[0] + i / sizes[1] : lo[0] + i;
    int64_t index = line * input.seq + column;
    if (name == "tokens")
      numbers[size_t(i)] = input.tokens[index];
    else if (name == "labels")
      numbers[size_t(i)] = input.labels[index];
    else if (name == "positions")
      numbers[size_t(i)] = column;
    else
      numbers[size_t(i)] =
          int64_t(random::chain(input.seed, uint64_t(input.step)));
  }
  if (row.type == DType::i64)
    return context.fromHost(row.type, sizes, row.rank, numbers.data());
  std::vector<int32_t> narrow(numbers.begin(), numbers.end());
  return context.fromHost(row.type, sizes, row.rank, narrow.data());
}

void StagedWorker::runPass(bool forward, int64_t microBatch,
                           const StepInput &input) {
  context.setMicroBatch(microBatch);
  int64_t slot = microBatch % inFlight;
  Values &in = inputs[size_t(slot)];
  if (forward) {
    in.clear();
    for (int i = 0; i < tables.numInputs; ++i)
      in.push_back(makeInput(tables.inputs[i], input));
  }
  int direction = forward ? 0 : 1;
  Values &from = received.direction[direction], &to = sent.direction[direction];
  to.clear();
  context.wait(received.ticket[direction]);
  if (!forward)
    context.setLastMicroBatch(++backwardPasses == tables.microBatches);
  if (forward)
    stage->forward(context, slot, in, from, to);
  else
    stage->backward(context, slot, in, from, to, sums);
  from.clear();
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

bool isSend(EventKind kind) {
  return kind == EventKind::sendForward || kind == EventKind::sendBackward;
}

int directionOf(EventKind kind) {
  return kind == EventKind::sendForward || kind == EventKind::receiveForward
             ? 0
             : 1;
}

/// Sends go along the direction, receives come against it.
int peerOf(EventKind kind, int64_t stage) {
  bool up = (directionOf(kind) == 0) == isSend(kind);
  return int(up ? stage + 1 : stage - 1);
}

void StagedWorker::transfer(const EventRow *events, int count,
                            const LoopRow &loop, int64_t iteration) {
  Rank &r = context.r;
  if (!r.ok())
    return;
  Communicator &group = context.group(tables.stageGroup);
  for (int e = 0; e < count; ++e) {
    const EventRow &event = events[e];
    if (isSend(event.kind))
      continue;
    int d = directionOf(event.kind);
    context.setMicroBatch(event.number + iteration +
                          (d == 0 ? loop.forward : loop.backward));
    received.direction[d] = d == 0 ? stage->receiveForward(context)
                                   : stage->receiveBackward(context);
  }
  // Opposing transfers are one group, on one of the two streams.
  bool forward = false;
  for (int e = 0; e < count; ++e) {
    forward |= directionOf(events[e].kind) == 0;
    if (isSend(events[e].kind))
      dropSent(directionOf(events[e].kind));
  }
  context.start(forward ? tables.forwardStream : tables.backwardStream,
                /*group=*/true);
  for (int e = 0; e < count; ++e) {
    const EventRow &event = events[e];
    int d = directionOf(event.kind);
    int peer = peerOf(event.kind, context.stage());
    const char *label = d == 0 ? "activations" : "gradients";
    for (AnyValue &value :
         isSend(event.kind) ? sent.direction[d] : received.direction[d])
      r.wait(isSend(event.kind) ? r.send(value, group, peer, label)
                                : r.recv(value, group, peer, label));
  }
  context.endGroup();
  Ticket ticket = context.finish();
  for (int e = 0; e < count; ++e) {
    int d = directionOf(events[e].kind);
    if (isSend(events[e].kind)) {
      leaving.direction[d].swap(sent.direction[d]);
      leaving.ticket[d] = ticket;
    } else {
      received.ticket[d] = ticket;
    }
  }
}

/// What was sent before in this direction has left.
void StagedWorker::dropSent(int direction) {
  context.wait(leaving.ticket[direction]);
  leaving.direction[direction].clear();
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

StepResult StagedWorker::step(const StepInput &input, const Hyper &hyper) {
  sums.clear();
  backwardPasses = 0;
  context.clearSums();
  validLabels = 0;
  for (int64_t i = 0; i < input.batch * input.seq; ++i)
    validLabels += input.labels[i] != IgnoredLabel;
  const StageRow &row = tables.stages[context.stage()];
  for (int l = row.firstLoop; l < row.firstLoop + row.loops; ++l) {
    const LoopRow &loop = tables.loops[l];
    for (int64_t t = 0; t < loop.repeat; ++t)
      for (int e = 0; e < loop.count; ++e) {
        const EventRow &event = tables.events[loop.first + e];
        if (!context.r.ok())
          return StepResult();
        if (event.kind == EventKind::group) {
          transfer(&event + 1, event.number, loop, t);
          e += event.number;
        } else {
          bool forward = event.kind == EventKind::forward;
          int64_t first = forward ? loop.forward : loop.backward;
          runPass(forward, first + event.number + t, input);
        }
      }
  }
  for (int direction : {0, 1})
    dropSent(direction);
  context.checkLoads();
  if (!context.r.ok())
    return StepResult();
  return update(input, hyper);
}

StepResult StagedWorker::update(const StepInput &input, const Hyper &hyper) {
  context.setMicroBatch(0);
  double power = double(input.step);
  struct Named {
    const char *name;
    double value;
  } known[] = {{"lr", hyper.lr},
               {"beta1", hyper.beta1},
               {"beta2", hyper.beta2},
               {"eps", hyper.eps},
               {"weight_decay", hyper.weightDecay},
               {"clip", hyper.clip},
               {"correction1", 1 - std::pow(hyper.beta1, power)},
               {"correction2", 1 - std::pow(hyper.beta2, power)}};
  scalars.clear();
  for (int i = 0; i < tables.numScalars; ++i)
    for (const Named &named : known)
      if (std::strcmp(named.name, tables.scalars[i]) == 0) {
        char bytes[16] = {};
        writeNumber(tables.scalarType, named.value, bytes);
        scalars.push_back(
            context.fromHost(tables.scalarType, nullptr, 0, bytes));
      }
  results.clear();
  stage->update(context, sums, scalars, results);
  context.commit();
  StepResult result;
  for (size_t i = 0; i < results.size() && context.r.ok(); ++i) {
    char bytes[16] = {};
    context.r.toHost(bytes, results[i].data(), results[i].bytes());
    double number = readNumber(results[i].any().type, bytes);
    if (std::strcmp(tables.results[i], "loss") == 0)
      result.loss = number;
    if (std::strcmp(tables.results[i], "grad_norm") == 0)
      result.gradNorm = number;
  }
  return result;
}

} // namespace

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

Mesh StagedProgram::mesh() const {
  Mesh mesh;
  for (int axis = 0; axis < tables.numAxes; ++axis) {
    mesh.axes.push_back(tables.axes[axis]);
    mesh.sizes.push_back(tables.axisSizes[axis]);
  }
  return mesh;
}

std::vector<TensorSpec> StagedProgram::parameters() const {
  std::vector<TensorSpec> specs;
  std::map<std::string, bool> seen;
  for (int p = 0; p < tables.numParams; ++p) {
    const ParamRow &row = tables.params[p];
    for (int64_t layer = 0; layer < std::max<int64_t>(row.layers, 1); ++layer) {
      TensorSpec spec;
      spec.name = checkpointName(row, layer);
      if (!seen.emplace(spec.name, true).second)
        continue;
      spec.type = row.stateType;
      spec.gradType = row.gradType;
      spec.init = row.init;
      spec.value = row.value;
      bool rows = hasRowTensors(spec.name);
      spec.shape.assign(row.full + (rows ? 1 : 0), row.full + row.rank);
      for (int64_t i = 0; rows && i < row.full[0]; ++i) {
        specs.push_back(spec);
        specs.back().name = rowName(spec.name, i);
      }
      if (!rows)
        specs.push_back(std::move(spec));
    }
  }
  return specs;
}

std::unique_ptr<Worker> StagedProgram::start(Rank &r) {
  return std::make_unique<StagedWorker>(r, tables, roles);
}

} // namespace parc
