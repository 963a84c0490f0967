//===- trainer.h - The main of an emitted program ---------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Flags, data, checkpoints and the step line of an emitted training program.
/// What depends on the model stays behind two small interfaces, which the
/// emitted code fills.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_TRAINER_H
#define PARC_TRAINER_H

#include "parc/rank.h"
#include "parc/safetensors.h"

#include <memory>
#include <string>
#include <vector>

namespace parc {

/// How a parameter begins when no weights are given.
enum class Init { constant, normal };

/// One logical tensor, whole: the name is the checkpoint's.
struct TensorSpec {
  std::string name;
  Shape shape;
  DType type = DType::f32; ///< As it is saved.
  Init init = Init::constant;
  double value = 0;            ///< The constant, or the standard deviation.
  DType gradType = DType::f32; ///< As its gradient is saved.
};

/// One rank's box of a logical tensor: row-major in this rank's memory.
struct Piece {
  std::string name;
  Shape lo, size; ///< Box [lo, lo + size) of the whole tensor.
  void *data = nullptr;
  bool owner = true; ///< Exactly one rank writes each element when saving.
  DType type = DType::f32; ///< Of the elements at `data`.
};

/// The optimizer's numbers; all may change from step to step.
struct Hyper {
  double lr = 1e-2, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weightDecay = 0;
  double clip = 0; ///< Largest global gradient norm; 0: no clipping.
};

/// The whole global batch, in host memory. Each rank takes what it needs.
struct StepInput {
  const int32_t *tokens; ///< [batch, seq]
  const int32_t *labels; ///< [batch, seq], IgnoredLabel where none.
  int64_t batch, seq;
  int64_t step; ///< From 1.
  uint64_t seed;
};

/// Known to every rank after a step.
struct StepResult {
  double loss = 0, gradNorm = 0;
};

/// The state of one rank: parameters, gradients, moments, buffers.
class Worker {
public:
  virtual ~Worker();
  virtual std::vector<Piece> parameters() = 0;
  /// Further places that the parameters' initial values go to, in their own
  /// type: what is computed with, where updates work on a wider copy.
  virtual std::vector<Piece> copies() { return {}; }
  /// Under the parameters' names; valid after a step.
  virtual std::vector<Piece> gradients() = 0;
  /// Pieces of Program::results(); valid after a step.
  virtual std::vector<Piece> results() { return {}; }
  /// One optimizer step. Failures are latched in the rank.
  virtual StepResult step(const StepInput &input, const Hyper &hyper) = 0;
};

/// What the emitted code says about itself.
class Program {
public:
  virtual ~Program();
  virtual Mesh mesh() const = 0;
  virtual int64_t batch() const = 0;
  virtual int64_t seq() const = 0;
  virtual int64_t vocab() const = 0;
  virtual Hyper hyper() const { return Hyper(); }
  /// Every parameter of the model, once.
  virtual std::vector<TensorSpec> parameters() const = 0;
  /// Further tensors to save, such as the logits.
  virtual std::vector<TensorSpec> results() const { return {}; }
  /// Creates communicators, in one order on all ranks, and allocates. Called
  /// on the rank's own thread.
  virtual std::unique_ptr<Worker> start(Rank &r) = 0;
};

/// The parsed command line.
struct TrainFlags {
  std::string data, weights, inputs, save;
  int64_t steps = 1;
  uint64_t seed = 0;
  int threads = 1;     ///< Of the host's matrix library, a rank.
  double timeout = 60; ///< Seconds until the watchdog speaks.
  Hyper hyper;
  bool help = false;
};

/// Parses the flags; \p flags holds the defaults. Errors name the flag, and
/// the nearest one where it is unknown.
Status parseTrainFlags(int argc, const char *const *argv, TrainFlags &flags);

/// "step 1  loss 4.7068  grad_norm 2.7705  lr 1.0e-02  2,910 tokens/s"
std::string stepLine(int64_t step, const StepResult &result, double lr,
                     double tokensPerSecond);

/// Trains as the flags say; step lines go to stdout, from rank 0.
Status train(Program &program, const TrainFlags &flags);

/// The emitted main: 0 done, 1 failed, 2 the command line was not understood.
int trainMain(Program &program, int argc, const char *const *argv);

/// The initial value of the element with this row-major index in the whole
/// tensor: a function of seed, name and index only (random.h; the op word is
/// nameWord(name), step and layer are 0).
double initialValue(const TensorSpec &spec, uint64_t seed, int64_t index);

/// The ids of a program without data: bits(key(seed, 0, nameWord("tokens"),
/// 0), index) modulo the vocabulary, index = sequence * seq + position.
int32_t syntheticToken(uint64_t seed, int64_t index, int64_t vocab);

} // namespace parc

#endif // PARC_TRAINER_H
