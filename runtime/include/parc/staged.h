//===- staged.h - Runs the stages of a generated program --------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A generated program is tables (mesh, communicators, parameters, schedule)
/// and one Stage for each role: forward, backward and update. What lies
/// between is here: parameters and their slots, the order of passes, grouped
/// transfers, inputs, checkpoints.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_STAGED_H
#define PARC_STAGED_H

#include "parc/kernels.h"
#include "parc/trainer.h"
#include "parc/value.h"

namespace parc {

constexpr int MaxAxes = 8;

/// Axes of the mesh by number, major to minor. The number after the last axis
/// of the mesh counts micro-batches.
struct AxisList {
  int count = 0;
  int axes[MaxAxes] = {};
};

/// A dimension: its whole size, the axes that part it, the grain.
struct DimRow {
  int64_t size = 1;
  int64_t grain = 1;
  AxisList axes = {};
};

struct GroupRow {
  const char *name;
  AxisList axes;
  const int64_t *stages; ///< Those that take part; null: all.
  int numStages;
};

struct ParamRow {
  /// `{}` stands for the layer; with `{i}` row i is a tensor of its own.
  const char *checkpoint;
  DType type;      ///< Of the value.
  DType gradType;  ///< What gradients are added up in.
  DType stateType; ///< Of what only an update uses.
  int rank;
  DimRow dims[MaxRank];
  int64_t full[MaxRank];    ///< The checkpoint's tensor.
  int64_t offsets[MaxRank]; ///< The parameter's box in it.
  int64_t layers;           ///< 0: one value, not one a layer.
  int stack;                ///< Whose layers; -1 where there are none.
  int64_t layerBase, layerStride;
  Init init;
  double value;
  int64_t firstStage; ///< Writes it, where several stages hold it.
  /// Slots with a bit here hold a piece of the row-major elements of what the
  /// dimensions leave; these axes cut them.
  uint64_t flatSlots;
  AxisList flat;
  bool trained; ///< Has a gradient.

  bool isFlat(int slot) const { return flatSlots >> slot & 1; }
  /// An update changes a wider copy of the value.
  bool hasMaster() const { return stateType != type; }
};

struct InputRow {
  const char *name; ///< tokens, labels, positions or seed.
  DType type;
  int rank;
  DimRow dims[MaxRank];
};

enum class EventKind : uint8_t {
  forward,
  backward,
  sendForward,
  receiveForward,
  sendBackward,
  receiveBackward,
  group, ///< The next `number` events are posted together.
};

struct EventRow {
  EventKind kind;
  int32_t number; ///< Micro-batch, counted from the loop's first.
};

/// `count` events from `first`, `repeat` times; each iteration adds one to
/// micro-batches.
struct LoopRow {
  int64_t repeat;
  int first, count;
  int64_t forward, backward; ///< First micro-batch of each direction.
};

struct StageRow {
  int role;
  int firstLoop, loops;
  int64_t inFlight; ///< Micro-batches between forward and backward.
};

/// Everything that depends on the sizes of mesh and model.
struct Tables {
  const char *const *axes;
  const int64_t *axisSizes;
  int numAxes;
  int stageAxis; ///< -1: no axis has stages.
  const GroupRow *groups;
  int numGroups;
  int stageGroup; ///< The group that transfers go through, or -1.
  const char *const *streams;
  int numStreams;                    ///< Stream 0 computes.
  int forwardStream, backwardStream; ///< Of transfers; 0 where there are none.
  const ParamRow *params;
  int numParams;
  int numSlots;      ///< Slot 0 is the value.
  uint64_t sumSlots; ///< Bit s: slot s is a sum over one step.
  int gradSlot;
  int reducedSlot; ///< The sum over ranks of a slot that is a rank's own; or
                   ///< -1.
  int masterSlot;  ///< The value in the state's type; or -1.
  const InputRow *inputs;
  int numInputs;
  const char *const *scalars;
  int numScalars;
  DType scalarType;
  const char *const *results;
  int numResults;
  const int64_t *stackCounts;
  int numStacks;
  const int64_t *bounds; ///< Of stages, in layers of all stacks.
  const StageRow *stages;
  int numStages;
  const LoopRow *loops;
  const EventRow *events;
  int64_t microBatches, batch, seq, vocab;
  Hyper hyper;
};

using Values = std::vector<AnyValue>;

/// The layers [begin, end) of a stack that a rank runs.
struct LayerRange {
  int64_t begin, end;
  int64_t count() const { return end - begin; }
};

/// What generated code sees of its rank.
class Context {
public:
  Context(Rank &r, const Tables &tables);

  Rank &r;
  Store store;
  const Tables &tables;

  template <class T> Value<T> make(std::initializer_list<int64_t> sizes) {
    return Value<T>(AnyValue::make(store, DTypeOf<T>::value, sizes.begin(),
                                   int(sizes.size())));
  }
  /// Of the same sizes and type.
  AnyValue like(const AnyView &view) {
    return AnyValue::make(store, view.type, view.dims, view.rank);
  }
  /// Row-major from host memory.
  AnyValue fromHost(DType type, const int64_t *sizes, int rank,
                    const void *data);

  /// \name Parts over axes at this rank's coordinate
  /// \{
  int64_t coordinate(const AxisList &axes) const;
  int64_t parts(const AxisList &axes) const;
  int64_t part_start(const AxisList &axes, int64_t size, int64_t grain) const;
  int64_t part_size(const AxisList &axes, int64_t size, int64_t grain) const;
  /// Bounds, relative to this rank's part over \p outer, of the parts over
  /// \p axes.
  Bounds bounds(const AxisList &outer, const AxisList &axes, int64_t size,
                int64_t grain) const;
  /// \}

  int64_t stage() const { return stage_; }
  LayerRange layers(int stack, int64_t begin, int64_t end) const;
  void setMicroBatch(int64_t microBatch) { microBatch_ = microBatch; }
  /// True in the step's last backward pass of this rank.
  bool lastMicroBatch() const { return lastMicroBatch_; }
  void setLastMicroBatch(bool last) { lastMicroBatch_ = last; }

  /// The element type of a slot.
  DType slotType(const ParamRow &row, int slot) const;
  /// Makes the slots of a parameter for these layers.
  void allocate(int param, LayerRange layers);
  /// The piece of a slot's \p elements that this rank holds: start and size.
  std::pair<int64_t, int64_t> piece(int param, int slot,
                                    int64_t elements) const;
  bool has(int param, int64_t layer) const;
  AnyView slot(int param, int64_t layer, int slot) const;
  template <class T> Value<T> load(int param, int64_t layer, int s) const {
    return Value<T>(AnyValue(slot(param, layer, s), nullptr));
  }
  /// Takes effect at the step's end.
  void keep(int param, int64_t layer, int s, const AnyValue &value);
  void commit();
  /// Zeroes the slots that are sums.
  void clearSums();

  /// Notes how many tokens each expert of a stack's layer (-1: of no stack)
  /// got, and how many its queue holds. The kernels drop what does not fit;
  /// that is found out by checkLoads, once a step, so that no kernel has to be
  /// waited for.
  void checkLoad(int stack, int64_t layer, AnyValue counts, int64_t limit) {
    loads_.push_back({stack, layer, std::move(counts), limit});
  }
  /// Fails where a queue noted since the last call was too short.
  void checkLoads();

  void createGroups();
  Communicator &group(int number) const { return *groups_[size_t(number)]; }

  /// \name Streams
  /// Between start and finish or detach everything is issued on the stream,
  /// after what was issued before; with \p group the collectives up to endGroup
  /// are one group.
  /// \{
  void start(int stream, bool group = false);
  void endGroup() { r.group_end(); }
  /// Ends it; the results can be read after wait().
  Ticket finish();
  /// Keeps values until what was started since start() is waited for.
  template <class... V> void hold(const V &...values) {
    (held_.push_back(values), ...);
  }
  /// Ends it; the slots that it stores to can be used after waitFor(). No more
  /// than two that hold values are under way on a stream.
  void detach();
  void wait(Ticket ticket) { r.wait(ticket); }
  void waitFor(int stream);
  /// \}

  /// \name Collectives that make their result
  /// \{
  AnyValue all_reduce(AnyValue value, int group, ReduceOp op,
                      const char *label);
  /// The same to memory that is there, which may be the value's own.
  void all_reduce_to(const AnyView &to, const AnyView &value, int group,
                     ReduceOp op, const char *label);
  void reduce_scatter_to(const AnyView &to, const AnyView &value, int group,
                         int dim, const Bounds &bounds, ReduceOp op,
                         const char *label);
  AnyValue all_gather(const AnyView &value, int group, int dim,
                      const Bounds &bounds, const char *label);
  AnyValue reduce_scatter(const AnyView &value, int group, int dim,
                          const Bounds &bounds, ReduceOp op, const char *label);
  AnyValue all_to_all(const AnyView &value, int group, int splitDim,
                      const Bounds &splitBounds, int concatDim,
                      const Bounds &concatBounds, const char *label);
  /// The same of the rows that are used, see Rank::all_to_all_rows; waits for
  /// their numbers, which sizes of messages depend on.
  AnyValue all_to_all(const AnyView &value, int group, int splitDim,
                      const Bounds &splitBounds, int concatDim,
                      const Bounds &concatBounds, const char *label,
                      const AnyValue &sent, const AnyValue &received);
  /// Gives the part of \p dim to the next member and gets that of the one
  /// before. After \p hops calls member i holds part i - hops.
  AnyValue shift(const AnyView &value, int group, int dim, int64_t hops,
                 const Bounds &bounds, const char *label);
  /// \}

  /// The number in a tensor of rank 0; waits for it.
  template <class T> T read(const Value<T> &value) {
    T number{};
    r.toHost(&number, value.data(), sizeof(T));
    return number;
  }

private:
  int64_t coordinateOf(int axis) const;
  int64_t sizeOfAxis(int axis) const;

  struct Held {
    int64_t firstLayer = 0;
    std::vector<Values> layers; ///< A value a slot.
  };
  struct Pending {
    AnyView to;
    AnyValue from;
  };

  struct Load {
    int stack;
    int64_t layer;
    AnyValue counts;
    int64_t limit;
  };

  /// What was detached and not waited for.
  struct Detached {
    int stream = 0;
    Ticket ticket;
    Values held;
  };
  void drop(size_t index);

  int64_t stage_ = 0, microBatch_ = 0;
  bool lastMicroBatch_ = false;
  int stream_ = 0;
  Values held_;
  std::vector<Detached> detached_;
  std::vector<int64_t> coordinates_;
  std::vector<Held> params_;
  std::vector<Pending> pending_;
  std::vector<Load> loads_;
  std::vector<Communicator *> groups_;
};

/// The generated program of one role.
class Stage {
public:
  virtual ~Stage();
  /// Makes the parameters that this role uses, and its buffers.
  virtual void prepare(Context &c, int64_t inFlight) = 0;
  /// Which parameters that is, by number.
  virtual std::vector<int> parameters() const = 0;
  /// One micro-batch; what it keeps for backward lies in \p slot.
  virtual void forward(Context &c, int64_t slot, const Values &inputs,
                       Values &received, Values &sent) = 0;
  /// Adds to \p sums.
  virtual void backward(Context &c, int64_t slot, const Values &inputs,
                        Values &received, Values &sent, Values &sums) = 0;
  virtual void update(Context &c, Values &sums, const Values &scalars,
                      Values &results) = 0;
  /// Buffers for what the context's micro-batch brings from the stage before,
  /// and from the one after.
  virtual Values receiveForward(Context &c) = 0;
  virtual Values receiveBackward(Context &c) = 0;
};

using MakeStage = std::unique_ptr<Stage> (*)();

/// A program of tables and roles.
class StagedProgram : public Program {
public:
  StagedProgram(const Tables &tables, const MakeStage *roles)
      : tables(tables), roles(roles) {}
  Mesh mesh() const override;
  int64_t batch() const override { return tables.batch; }
  int64_t seq() const override { return tables.seq; }
  int64_t vocab() const override { return tables.vocab; }
  Hyper hyper() const override { return tables.hyper; }
  std::vector<TensorSpec> parameters() const override;
  std::unique_ptr<Worker> start(Rank &r) override;

private:
  const Tables &tables;
  const MakeStage *roles;
};

/// sum += term, or sum = term where there is no sum yet. A rank-0 sum.
template <class T>
void addSum(Context &c, AnyValue &sum, const Value<T> &term) {
  if (!sum.data()) {
    sum = c.like(term);
    c.r.copy(sum, term);
    return;
  }
  View<T> to = Value<T>(sum).view();
  View<T> from = term.view();
  map<1>(
      c.r, {to.size()},
      PARC_FN(int64_t i) { to.data[i] = T(to.data[i] + from.data[i]); });
}

/// The whole of a parameter's slot += term.
template <class T>
void accumulate(Context &c, int param, int64_t layer, int slot,
                const Value<T> &term) {
  AnyValue sum(c.slot(param, layer, slot), nullptr);
  addSum<T>(c, sum, term);
}

} // namespace parc

#endif // PARC_STAGED_H
