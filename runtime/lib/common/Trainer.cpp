//===- Trainer.cpp - The training loop ------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Loads or initialises every rank's pieces, feeds global batches, prints the
/// step line, and saves each element once.
///
//===----------------------------------------------------------------------===//

#include "parc/trainer.h"

#include "parc/gemm.h"
#include "parc/random.h"
#include "parc/tokens.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>

namespace parc {

Worker::~Worker() = default;
Program::~Program() = default;

double initialValue(const TensorSpec &spec, uint64_t seed, int64_t index) {
  if (spec.init == Init::constant)
    return spec.value;
  uint64_t key = random::key(seed, 0, random::nameWord(spec.name.c_str()), 0);
  return spec.value * random::normal(key, uint64_t(index));
}

int32_t syntheticToken(uint64_t seed, int64_t index, int64_t vocab) {
  uint64_t key = random::key(seed, 0, random::nameWord("tokens"), 0);
  return int32_t(random::bits(key, uint64_t(index)) % uint64_t(vocab));
}

namespace {

/// Global batches, from a token file, from fixed inputs, or made up.
class Batches {
public:
  Batches(const Program &p, const TrainFlags &f) : program(p), flags(f) {}

  Status open() {
    if (!flags.data.empty()) {
      PARC_TRY(file.open(flags.data));
      return file.check(program.seq(), program.vocab());
    }
    return flags.inputs.empty() ? synthesize() : readInputs();
  }

  /// The batch of \p step, from 1, into the caller's arrays.
  void fill(int64_t step, std::vector<int32_t> &tokens,
            std::vector<int32_t> &labels) const {
    if (flags.data.empty()) {
      tokens = fixedTokens;
      labels = fixedLabels;
      return;
    }
    int64_t batch = program.batch(), seq = program.seq();
    tokens.resize(size_t(batch * seq));
    labels.resize(size_t(batch * seq));
    for (int64_t b = 0; b < batch; ++b)
      file.sequence((step - 1) * batch + b, seq, tokens.data() + b * seq,
                    labels.data() + b * seq);
  }

private:
  /// Labels are the ids one further on; the last position has none.
  void shift() {
    int64_t seq = program.seq();
    fixedLabels.assign(fixedTokens.size(), IgnoredLabel);
    for (size_t i = 0; i + 1 < fixedTokens.size(); ++i)
      if (int64_t(i) % seq != seq - 1)
        fixedLabels[i] = fixedTokens[i + 1];
  }
  Status synthesize() {
    int64_t n = program.batch() * program.seq();
    for (int64_t i = 0; i < n; ++i)
      fixedTokens.push_back(syntheticToken(flags.seed, i, program.vocab()));
    shift();
    return Status();
  }
  Status readInputs() {
    SafetensorsFile inputs;
    PARC_TRY(inputs.open(flags.inputs));
    Shape shape = {program.batch(), program.seq()};
    fixedTokens.resize(size_t(shape[0] * shape[1]));
    PARC_TRY(inputs.read("input_ids", shape, DType::i32, fixedTokens.data()));
    shift();
    if (inputs.find("labels"))
      PARC_TRY(inputs.read("labels", shape, DType::i32, fixedLabels.data()));
    for (size_t i = 0; i < fixedTokens.size(); ++i) {
      bool label = fixedLabels[i] == IgnoredLabel ||
                   (fixedLabels[i] >= 0 && fixedLabels[i] < program.vocab());
      if (fixedTokens[i] < 0 || fixedTokens[i] >= program.vocab() || !label)
        return Status(
            Code::BadFile,
            flags.inputs + ": expected ids from 0 to " +
                std::to_string(program.vocab() - 1) +
                " and labels alike or -100, got " +
                std::to_string(label ? fixedTokens[i] : fixedLabels[i]) +
                " at " + std::to_string(i));
    }
    return Status();
  }

  const Program &program;
  const TrainFlags &flags;
  TokenFile file;
  std::vector<int32_t> fixedTokens, fixedLabels;
};

int64_t product(const Shape &shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t(1),
                         std::multiplies<int64_t>());
}

/// Row-major index in the whole tensor of element \p i of a box.
int64_t globalIndex(const Shape &full, const Piece &piece, int64_t i) {
  int64_t index = 0, stride = 1;
  for (int d = int(full.size()) - 1; d >= 0; --d) {
    index += (piece.lo[d] + i % piece.size[d]) * stride;
    i /= piece.size[d];
    stride *= full[d];
  }
  return index;
}

/// All of one run; one object, shared by the ranks of this process.
class Run {
public:
  Run(Program &p, const TrainFlags &f) : program(p), flags(f), batches(p, f) {}

  Status prepare() {
    for (const TensorSpec &spec : program.parameters())
      specs.push_back(spec);
    std::sort(specs.begin(), specs.end(),
              [](auto &a, auto &b) { return a.name < b.name; });
    if (!flags.weights.empty())
      PARC_TRY(weights.open(flags.weights));
    PARC_TRY(batches.open());
    setGemmThreads(flags.threads);
    return Status();
  }

  Status rank(Endpoint &endpoint) const;

private:
  const TensorSpec *spec(const std::string &name) const {
    auto it = std::lower_bound(
        specs.begin(), specs.end(), name,
        [](auto &s, const std::string &n) { return s.name < n; });
    return it != specs.end() && it->name == name ? &*it : nullptr;
  }
  Status load(Rank &r, const Piece &piece) const;
  Status save(Rank &r, Communicator &world, Worker &worker,
              const StepResult &result) const;
  Status writePieces(Rank &r, SafetensorsWriter &writer,
                     const std::string &prefix,
                     const std::vector<Piece> &pieces,
                     const std::vector<TensorSpec> &known) const;
  static Status barrier(Rank &r, Communicator &world);

  Program &program;
  const TrainFlags &flags;
  Batches batches;
  SafetensorsFile weights;
  std::vector<TensorSpec> specs; ///< Sorted by name.
};

Status Run::load(Rank &r, const Piece &piece) const {
  const TensorSpec *s = spec(piece.name);
  if (!s)
    return Status(Code::InvalidArgument,
                  "piece of an unknown parameter '" + piece.name + "'");
  int64_t n = product(piece.size);
  std::vector<char> host(size_t(n) * sizeOf(piece.type));
  if (!flags.weights.empty())
    PARC_TRY(weights.read(s->name, s->shape, piece.lo, piece.size, piece.type,
                          host.data()));
  else
    dispatch(piece.type, [&](auto zero) {
      using T = decltype(zero);
      T *out = reinterpret_cast<T *>(host.data());
      for (int64_t i = 0; i < n; ++i) {
        double v =
            initialValue(*s, flags.seed, globalIndex(s->shape, piece, i));
        if constexpr (std::is_same_v<T, Zp>)
          out[i] = Zp::fromDouble(v);
        else
          out[i] = T(v);
      }
    });
  r.toDevice(piece.data, host.data(), host.size());
  return r.status();
}

Status Run::barrier(Rank &r, Communicator &world) {
  Tensor<int32_t> one(r.pool(), {1});
  r.fillZero(one.data(), sizeof(int32_t));
  r.wait(r.all_reduce(one, world, ReduceOp::sum, "barrier"));
  r.synchronize();
  return r.status();
}

Status Run::writePieces(Rank &r, SafetensorsWriter &writer,
                        const std::string &prefix,
                        const std::vector<Piece> &pieces,
                        const std::vector<TensorSpec> &known) const {
  for (const Piece &piece : pieces) {
    if (!piece.owner)
      continue;
    auto s = std::find_if(known.begin(), known.end(),
                          [&](auto &k) { return k.name == piece.name; });
    if (s == known.end())
      return Status(Code::InvalidArgument,
                    "piece of an unknown tensor '" + piece.name + "'");
    std::vector<char> host(size_t(product(piece.size)) * sizeOf(piece.type));
    r.toHost(host.data(), piece.data, host.size());
    PARC_TRY(r.status());
    PARC_TRY(writer.writeBox(prefix + piece.name, piece.lo, piece.size,
                             host.data()));
  }
  return Status();
}

Status Run::save(Rank &r, Communicator &world, Worker &worker,
                 const StepResult &result) const {
  std::vector<TensorEntry> entries = {{"loss", FileType::F64, {}},
                                      {"grad_norm", FileType::F64, {}}};
  for (const TensorSpec &s : specs) {
    entries.push_back({"param." + s.name, fileTypeOf(s.type), s.shape});
    entries.push_back({"grad." + s.name, fileTypeOf(s.gradType), s.shape});
  }
  std::vector<TensorSpec> extra = program.results();
  for (const TensorSpec &s : extra)
    entries.push_back({s.name, fileTypeOf(s.type), s.shape});
  SafetensorsWriter writer(flags.save, std::move(entries));
  bool first = r.id() == 0;
  if (first)
    PARC_TRY(writer.create());
  Status status = barrier(r, world);
  if (status.ok() && first) {
    status.update(writer.writeBox("loss", {}, {}, &result.loss));
    status.update(writer.writeBox("grad_norm", {}, {}, &result.gradNorm));
  }
  if (status.ok())
    status = writePieces(r, writer, "param.", worker.parameters(), specs);
  if (status.ok())
    status = writePieces(r, writer, "grad.", worker.gradients(), specs);
  if (status.ok())
    status = writePieces(r, writer, "", worker.results(), extra);
  if (status.ok())
    status = barrier(r, world);
  if (first && status.ok())
    return writer.commit();
  if (first)
    writer.abandon();
  return status;
}

Status Run::rank(Endpoint &endpoint) const {
  Rank r(endpoint, program.mesh());
  std::vector<int> everyone(size_t(r.worldSize()));
  std::iota(everyone.begin(), everyone.end(), 0);
  Communicator *world = r.create("world", everyone);
  PARC_TRY(r.status());
  std::unique_ptr<Worker> worker = program.start(r);
  PARC_TRY(r.status());
  for (const std::vector<Piece> &pieces :
       {worker->parameters(), worker->copies()})
    for (const Piece &piece : pieces)
      PARC_TRY(load(r, piece));
  std::vector<int32_t> tokens, labels;
  StepResult result;
  for (int64_t step = 1; step <= flags.steps; ++step) {
    auto begin = std::chrono::steady_clock::now();
    batches.fill(step, tokens, labels);
    StepInput input = {tokens.data(), labels.data(), program.batch(),
                       program.seq(), step,          flags.seed};
    result = worker->step(input, flags.hyper);
    r.synchronize();
    PARC_TRY(r.status());
    std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - begin;
    if (r.id() == 0) {
      double rate = double(input.batch * input.seq) / took.count();
      std::printf("%s\n", stepLine(step, result, flags.hyper.lr, rate).c_str());
      std::fflush(stdout);
    }
  }
  if (!flags.save.empty() && flags.steps > 0)
    PARC_TRY(save(r, *world, *worker, result));
  worker.reset(); // before the rank's pool
  return r.status();
}

} // namespace

Status train(Program &program, const TrainFlags &flags) {
  Run run(program, flags);
  PARC_TRY(run.prepare());
  WorldOptions options;
  options.timeoutSeconds = flags.timeout;
  return World::launch(
      int(program.mesh().devices()),
      [&](Endpoint &endpoint) { return run.rank(endpoint); }, options);
}

} // namespace parc
