//===- Resolver.h - Resolution of a declaration -----------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What flags, a plan and the model come to. Members are defined by what they
/// read: Declaration.cpp (mesh, schedule, choices), DeclarationSizes.cpp
/// (batch, ZeRO, stages), DeclarationExperts.cpp.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_DRIVER_RESOLVER_H
#define PARC_LIB_DRIVER_RESOLVER_H

#include "parc/Driver/Declaration.h"

namespace mlir::parc::driver {

/// The shortest text that reads back as the same number.
std::string numberText(double value);

/// One resolution.
class Resolver {
public:
  Resolver(const DeclarationSource &source, const ModelFacts &facts,
           bool forDevices, Reporter &reporter)
      : source(source), facts(facts), forDevices(forDevices),
        reporter(reporter) {}

  std::optional<Declaration> run();

private:
  const std::pair<RawValue, Origin> *find(StringRef key) const {
    auto found = source.values.find(key.str());
    return found == source.values.end() ? nullptr : &found->second;
  }
  bool fail(const Place &place, const Twine &message, StringRef name) {
    reporter.error(place, message, name);
    return false;
  }
  bool readMesh();
  bool readOrder();
  bool readCount(StringRef key, Setting<int64_t> &out, int64_t otherwise,
                 Origin origin);
  bool readSchedule();
  bool readOptimizer();
  bool readContext();
  bool readChoice(StringRef key, ArrayRef<StringRef> choices,
                  Setting<std::string> &out);
  bool readSequenceParallel();
  bool readExperts();
  bool readSizes();
  bool checkExpertKeys();
  bool readMoe();
  bool readExpertScope();
  void warnExpertCuts();
  bool readFactor(StringRef key, double least, Setting<double> &out);
  bool readZero();
  bool checkZeroGroup();
  bool checkStages();
  bool checkBatch();
  void warnNodes();

  const DeclarationSource &source;
  const ModelFacts &facts;
  bool forDevices;
  Reporter &reporter;
  Declaration result;
};

} // namespace mlir::parc::driver

#endif // PARC_LIB_DRIVER_RESOLVER_H
