//===- TrainFlags.cpp - Command line of an emitted program ----------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Flags by a table; numbers are read strictly.
///
//===----------------------------------------------------------------------===//

#include "parc/trainer.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace parc {

namespace {

/// Where a flag's value goes; exactly one target is set.
struct Flag {
  const char *name;
  std::string *text = nullptr;
  int64_t *integer = nullptr;
  double *number = nullptr;
  double least = 0;
};

std::vector<Flag> flagTable(TrainFlags &f, int64_t &seed, int64_t &threads) {
  Hyper &h = f.hyper;
  return {{"data", &f.data},
          {"weights", &f.weights},
          {"inputs", &f.inputs},
          {"save", &f.save},
          {"steps", nullptr, &f.steps, nullptr, 0},
          {"seed", nullptr, &seed, nullptr, 0},
          {"threads", nullptr, &threads, nullptr, 1},
          {"timeout", nullptr, nullptr, &f.timeout, 0},
          {"lr", nullptr, nullptr, &h.lr, 0},
          {"beta1", nullptr, nullptr, &h.beta1, 0},
          {"beta2", nullptr, nullptr, &h.beta2, 0},
          {"eps", nullptr, nullptr, &h.eps, 0},
          {"weight-decay", nullptr, nullptr, &h.weightDecay, 0},
          {"clip", nullptr, nullptr, &h.clip, 0}};
}

size_t distance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t next = std::min(
          {row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = row[j];
      row[j] = next;
    }
  }
  return row.back();
}

Status unknown(const std::string &name, const std::vector<Flag> &table) {
  const Flag *best = &table[0];
  for (const Flag &flag : table)
    if (distance(name, flag.name) < distance(name, best->name))
      best = &flag;
  bool near = distance(name, best->name) <= 2;
  return Status(Code::InvalidArgument, "unknown flag --" + name,
                near ? std::string("did you mean --") + best->name + "?"
                     : "--help lists the flags");
}

Status assign(const Flag &flag, const std::string &value) {
  std::string who = std::string("--") + flag.name;
  if (flag.text) {
    if (value.empty())
      return Status(Code::InvalidArgument, who + ": expected a file name");
    *flag.text = value;
    return Status();
  }
  char *end = nullptr;
  errno = 0;
  double number = 0;
  if (flag.integer) {
    *flag.integer = std::strtoll(value.c_str(), &end, 10);
    number = double(*flag.integer);
  } else {
    number = *flag.number = std::strtod(value.c_str(), &end);
  }
  if (value.empty() || *end || errno || !std::isfinite(number))
    return Status(Code::InvalidArgument,
                  who + ": expected " +
                      (flag.integer ? "an integer" : "a number") + ", got '" +
                      value + "'");
  if (number < flag.least)
    return Status(Code::InvalidArgument,
                  who + ": expected at least " +
                      std::to_string(int64_t(flag.least)) + ", got " + value);
  return Status();
}

} // namespace

Status parseTrainFlags(int argc, const char *const *argv, TrainFlags &flags) {
  int64_t seed = int64_t(flags.seed), threads = flags.threads;
  std::vector<Flag> table = flagTable(flags, seed, threads);
  for (int i = 1; i < argc; ++i) {
    std::string arg = argv[i];
    if (arg == "--help" || arg == "-h") {
      flags.help = true;
      return Status();
    }
    if (arg.compare(0, 2, "--") != 0)
      return Status(Code::InvalidArgument,
                    "expected a flag that begins with --, got '" + arg + "'");
    size_t equals = arg.find('=');
    std::string name = arg.substr(2, equals - 2);
    auto it = std::find_if(table.begin(), table.end(),
                           [&](const Flag &f) { return name == f.name; });
    if (it == table.end())
      return unknown(name, table);
    if (equals == std::string::npos && i + 1 == argc)
      return Status(Code::InvalidArgument, "--" + name + ": expected a value");
    PARC_TRY(assign(*it, equals == std::string::npos ? argv[++i]
                                                     : arg.substr(equals + 1)));
  }
  flags.seed = uint64_t(seed);
  flags.threads = int(std::min<int64_t>(threads, 4096));
  if (!flags.data.empty() && !flags.inputs.empty())
    return Status(Code::InvalidArgument,
                  "expected one of --data and --inputs, got both");
  if (flags.hyper.beta1 >= 1 || flags.hyper.beta2 >= 1)
    return Status(Code::InvalidArgument,
                  "expected --beta1 and --beta2 below 1");
  return Status();
}

std::string stepLine(int64_t step, const StepResult &result, double lr,
                     double tokensPerSecond) {
  std::string rate = std::to_string(int64_t(tokensPerSecond + 0.5));
  for (int at = int(rate.size()) - 3; at > 0; at -= 3)
    rate.insert(size_t(at), ",");
  char line[160];
  std::snprintf(line, sizeof line,
                "step %lld  loss %.4f  grad_norm %.4f  lr %.1e  %s tokens/s",
                (long long)step, result.loss, result.gradNorm, lr,
                rate.c_str());
  return line;
}

static const char *const usage =
    "usage: train [flags]\n"
    "  --data FILE       token file (parc/tokens.h); else synthetic ids\n"
    "  --inputs FILE     safetensors with input_ids and optional labels,\n"
    "                    the same for every step\n"
    "  --weights FILE    safetensors with the parameters; else initialised\n"
    "  --save FILE       safetensors of the last step\n"
    "  --steps N         [1]\n"
    "  --lr --beta1 --beta2 --eps --weight-decay --clip NUMBER\n"
    "  --seed N          of parameters and random masks [0]\n"
    "  --threads N       of matrix products, a rank, on the host [1]\n"
    "  --timeout SECONDS until the watchdog stops a hanging run [60]\n";

int trainMain(Program &program, int argc, const char *const *argv) {
  TrainFlags flags;
  flags.hyper = program.hyper();
  Status status = parseTrainFlags(argc, argv, flags);
  if (!status.ok()) {
    std::fprintf(stderr, "error: %s\n", status.text().c_str());
    return 2;
  }
  if (flags.help) {
    std::fputs(usage, stdout);
    return 0;
  }
  status = train(program, flags);
  if (status.ok())
    return 0;
  std::fprintf(stderr, "error: %s\n", status.text().c_str());
  return 1;
}

} // namespace parc
