//===- main.cpp - Times steps and their products --------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Runs steps of the emitted program on one host rank and its recorded matrix
/// products in turns, and prints the ratio of their fastest times.
///
//===----------------------------------------------------------------------===//

#include "products.h"
#include "tables.h"

#include <chrono>
#include <cstdio>

using namespace parc;

static double seconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

static Status run(Endpoint &endpoint) {
  StagedProgram program(model::tables, model::roles);
  Rank r(endpoint, program.mesh());
  std::vector<int> everyone = {0};
  r.create("world", everyone);
  std::unique_ptr<Worker> worker = program.start(r);
  uint32_t state = 1;
  for (const Piece &piece : worker->parameters()) {
    int64_t count = 1;
    for (int64_t size : piece.size)
      count *= size;
    for (int64_t i = 0; i < count; ++i) {
      state = state * 1664525u + 1013904223u;
      static_cast<float *>(piece.data)[i] =
          piece.size.size() == 1 ? 1.0f : float(state >> 8) / 4.2e8f - 0.02f;
    }
  }
  std::vector<int32_t> tokens, labels;
  for (int64_t i = 0; i < program.batch() * program.seq(); ++i) {
    tokens.push_back(syntheticToken(0, i, program.vocab()));
    labels.push_back(syntheticToken(1, i, program.vocab()));
  }
  auto step = [&](int64_t number) {
    StepInput input = {tokens.data(), labels.data(), program.batch(),
                       program.seq(), number,        0};
    double begin = seconds();
    StepResult result = worker->step(input, program.hyper());
    (void)result;
    return seconds() - begin;
  };
  step(1);
  recordProducts(true);
  step(2);
  recordProducts(false);
  double bestStep = 1e30, bestProducts = 1e30;
  replayProducts(r);
  for (int64_t turn = 0; turn < 8; ++turn) {
    bestStep = std::min(bestStep, step(3 + turn));
    double begin = seconds();
    replayProducts(r);
    bestProducts = std::min(bestProducts, seconds() - begin);
  }
  std::printf("products  %d, %.1f GFLOP\n", recordedProducts(),
              recordedFlops() * 1e-9);
  std::printf("products  %.1f ms, %.0f GFLOP/s\n", bestProducts * 1e3,
              recordedFlops() * 1e-9 / bestProducts);
  std::printf("step      %.1f ms\n", bestStep * 1e3);
  std::printf("ratio     %.2f\n", bestStep / bestProducts);
  return r.status();
}

int main() {
  Status status = World::run(1, run);
  if (!status.ok())
    std::fprintf(stderr, "error: %s\n", status.text().c_str());
  return status.ok() ? 0 : 1;
}
