//===- TrainerTest.cpp - Flags, the step line, checkpoints ----------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A toy program (its loss is half the sum of squares of its weights) trained
/// on several numbers of ranks: files must not depend on how many there are.
///
//===----------------------------------------------------------------------===//

#include "parc/trainer.h"
#include "parc/kernels.h"
#include "parc/random.h"
#include "parc/tokens.h"

#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace parc;

namespace {

constexpr int64_t Rows = 7, Cols = 3;

void halfSquares(Rank &r, View<double> out, View<const double> w) {
  reduce<0, 2>(
      r, {}, {w.dims[0], w.dims[1]}, 0.0, Sum(),
      PARC_FN(int64_t i, int64_t j) { return 0.5 * w(i, j) * w(i, j); },
      PARC_FN(double v) { out() = v; });
}
void descend(Rank &r, View<double> w, View<double> g, double rate) {
  map<2>(
      r, {w.dims[0], w.dims[1]}, PARC_FN(int64_t i, int64_t j) {
        g(i, j) = w(i, j);
        w(i, j) -= rate * g(i, j);
      });
}

/// "w" is split by rows; "b" is replicated, and rank 0 owns it.
class ToyWorker : public Worker {
public:
  ToyWorker(Rank &r, int ranks)
      : r(r), comm(r.createOver({"dp"})), lo(partStart(Rows, ranks, r.id())),
        n(partStart(Rows, ranks, r.id() + 1) - lo), w(r.pool(), {n, Cols}),
        gw(r.pool(), {n, Cols}), b(r.pool(), {1, Cols}),
        gb(r.pool(), {1, Cols}), loss(r.pool(), {1}) {}

  std::vector<Piece> parameters() override { return pieces(w, b); }
  std::vector<Piece> gradients() override { return pieces(gw, gb); }
  StepResult step(const StepInput &input, const Hyper &hyper) override {
    halfSquares(r, View<double>(loss.data(), {}), w);
    r.wait(r.all_reduce(loss, *comm, ReduceOp::sum, "loss"));
    descend(r, w, gw, hyper.lr);
    descend(r, b, gb, hyper.lr);
    StepResult result;
    r.toHost(&result.loss, loss.data(), sizeof(double));
    result.gradNorm = double(input.tokens[0]);
    return result;
  }

private:
  std::vector<Piece> pieces(Tensor<double> &x, Tensor<double> &y) {
    return {{"w", {lo, 0}, {n, Cols}, x.data(), true, DType::f64},
            {"b", {0}, {Cols}, y.data(), r.id() == 0, DType::f64}};
  }

  Rank &r;
  Communicator *comm;
  int64_t lo, n;
  Tensor<double> w, gw, b, gb, loss;
};

class Toy : public Program {
public:
  explicit Toy(int ranks) : ranks(ranks) {}
  Mesh mesh() const override { return {{"dp"}, {ranks}}; }
  int64_t batch() const override { return 2; }
  int64_t seq() const override { return 4; }
  int64_t vocab() const override { return 11; }
  std::vector<TensorSpec> parameters() const override {
    return {{"w", {Rows, Cols}, DType::f64, Init::normal, 0.02, DType::f64},
            {"b", {Cols}, DType::f64, Init::constant, 1, DType::f64}};
  }
  std::unique_ptr<Worker> start(Rank &r) override {
    return std::make_unique<ToyWorker>(r, ranks);
  }

private:
  int ranks;
};

std::string temporary(const char *name) {
  return ::testing::TempDir() + "parc_trainer_test_" +
         std::to_string(getpid()) + "_" + name;
}

std::string contents(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(in)), {});
}

bool deviceMissing() {
#ifdef PARC_CUDA
  return true; // the host suite already covers files; ranks need devices
#else
  return false;
#endif
}

TEST(Trainer, SavedFilesDoNotDependOnTheNumberOfRanks) {
  if (deviceMissing())
    GTEST_SKIP() << "not run: needs three CUDA devices";
  std::string bytes;
  for (int ranks : {1, 2, 3}) {
    Toy toy(ranks);
    TrainFlags flags;
    flags.steps = 1;
    flags.seed = 5;
    flags.save = temporary("save");
    Status status = train(toy, flags);
    ASSERT_TRUE(status.ok()) << status.text();
    SafetensorsFile f;
    ASSERT_TRUE(f.open(flags.save).ok());
    double w[Rows * Cols], g[Rows * Cols], b[Cols];
    ASSERT_TRUE(f.read("param.w", {Rows, Cols}, DType::f64, w).ok());
    ASSERT_TRUE(f.read("grad.w", {Rows, Cols}, DType::f64, g).ok());
    ASSERT_TRUE(f.read("param.b", {Cols}, DType::f64, b).ok());
    for (int i = 0; i < Rows * Cols; ++i) {
      double first = initialValue(toy.parameters()[0], 5, i);
      EXPECT_EQ(g[i], first);
      EXPECT_DOUBLE_EQ(w[i], first * (1 - 1e-2));
    }
    EXPECT_EQ(b[2], 0.99);
    // The loss is a sum of parts, and may differ in its last bits.
    std::string now = contents(flags.save).substr(0, 376); // header
    bytes = bytes.empty() ? now : bytes;
    EXPECT_EQ(now, bytes);
    std::remove(flags.save.c_str());
  }
}

TEST(Trainer, WeightsInputsAndDataAreRead) {
  if (deviceMissing())
    GTEST_SKIP() << "not run: needs two CUDA devices";
  std::vector<double> w(Rows * Cols, 2.0), b(Cols, 3.0);
  TrainFlags flags;
  flags.weights = temporary("weights");
  flags.save = temporary("save");
  ASSERT_TRUE(writeSafetensors(flags.weights,
                               {{{"w", FileType::F64, {Rows, Cols}}, w.data()},
                                {{"b", FileType::F64, {Cols}}, b.data()}})
                  .ok());
  std::string data = temporary("data"), inputs = temporary("inputs");
  ASSERT_TRUE(writeTokens(data, {9, 1, 2, 3, 4, 5, 6, 7, 8}, 2).ok());
  int64_t ids[8] = {7, 0, 0, 0, 0, 0, 0, 0};
  ASSERT_TRUE(
      writeSafetensors(inputs, {{{"input_ids", FileType::I64, {2, 4}}, ids}})
          .ok());
  auto saved = [&](const char *name) {
    SafetensorsFile f;
    double v = -1;
    EXPECT_TRUE(f.open(flags.save).ok());
    EXPECT_TRUE(f.read(name, {}, DType::f64, &v).ok());
    return v;
  };
  Toy toy(2);
  flags.data = data;
  Status status = train(toy, flags);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(saved("loss"), 0.5 * 4 * Rows * Cols);
  EXPECT_EQ(saved("grad_norm"), 9); // the toy reports its first token
  flags.data.clear();
  flags.inputs = inputs;
  status = train(toy, flags);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(saved("grad_norm"), 7);
  flags.inputs.clear();
  status = train(toy, flags);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(saved("grad_norm"), syntheticToken(0, 0, 11));

  ids[3] = 11; // outside the vocabulary
  ASSERT_TRUE(
      writeSafetensors(inputs, {{{"input_ids", FileType::I64, {2, 4}}, ids}})
          .ok());
  flags.inputs = inputs;
  EXPECT_NE(train(toy, flags).message().find("ids from 0 to 10"),
            std::string::npos);
  flags.inputs.clear();
  flags.save = "/nonexistent/save";
  EXPECT_NE(train(toy, flags).message().find("/nonexistent/save"),
            std::string::npos);
  for (const std::string &path :
       {flags.weights, data, inputs, temporary("save")})
    std::remove(path.c_str());
}

Status parse(std::vector<const char *> args, TrainFlags &flags) {
  args.insert(args.begin(), "train");
  return parseTrainFlags(int(args.size()), args.data(), flags);
}

TEST(TrainFlags, AreParsed) {
  TrainFlags f;
  Status s = parse({"--data", "t.bin", "--steps=12", "--lr", "3e-4",
                    "--weight-decay=0.1", "--seed", "7", "--threads", "2"},
                   f);
  ASSERT_TRUE(s.ok()) << s.text();
  EXPECT_EQ(f.data, "t.bin");
  EXPECT_EQ(f.steps, 12);
  EXPECT_EQ(f.hyper.lr, 3e-4);
  EXPECT_EQ(f.hyper.weightDecay, 0.1);
  EXPECT_EQ(f.seed, 7u);
  EXPECT_EQ(f.threads, 2);
}

TEST(TrainFlags, ErrorsNameTheFlag) {
  auto text = [](std::vector<const char *> args) {
    TrainFlags f;
    return parse(std::move(args), f).text();
  };
  EXPECT_EQ(text({"--step", "3"}),
            "unknown flag --step\nhelp: did you mean --steps?");
  EXPECT_EQ(text({"--frobnicate", "3"}),
            "unknown flag --frobnicate\nhelp: --help lists the flags");
  EXPECT_EQ(text({"steps"}),
            "expected a flag that begins with --, got 'steps'");
  EXPECT_EQ(text({"--steps"}), "--steps: expected a value");
  EXPECT_EQ(text({"--steps", "3x"}), "--steps: expected an integer, got '3x'");
  EXPECT_EQ(text({"--steps", "-1"}), "--steps: expected at least 0, got -1");
  EXPECT_EQ(text({"--lr", "nan"}), "--lr: expected a number, got 'nan'");
  EXPECT_EQ(text({"--threads=0"}), "--threads: expected at least 1, got 0");
  EXPECT_EQ(text({"--data="}), "--data: expected a file name");
  EXPECT_EQ(text({"--data", "a", "--inputs", "b"}),
            "expected one of --data and --inputs, got both");
  EXPECT_EQ(text({"--beta1", "1"}), "expected --beta1 and --beta2 below 1");
}

TEST(TrainFlags, StepLine) {
  EXPECT_EQ(stepLine(1, {4.7068, 2.7705}, 1e-2, 2910.4),
            "step 1  loss 4.7068  grad_norm 2.7705  lr 1.0e-02  2,910 "
            "tokens/s");
  EXPECT_EQ(stepLine(12, {1, 2}, 3e-4, 1234567),
            "step 12  loss 1.0000  grad_norm 2.0000  lr 3.0e-04  1,234,567 "
            "tokens/s");
}

} // namespace
