//===- FuzzTest.cpp - Random models on random meshes ----------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The differential fuzzer. As a test it runs the first seeds; for a campaign:
///
///     ParcFuzzTests --from 2000 --count 100000 [--threads 2] [--seconds 600]
///     ParcFuzzTests --from 4711 --count 1 --show
///
/// A case that is wrong is shrunk and printed as a config and a command.
///
//===----------------------------------------------------------------------===//

#include "Run.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/PrettyStackTrace.h"
#include "llvm/Support/Signals.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

using namespace mlir::parc::fuzz;

namespace {

/// Which seeds to run, and how.
struct Campaign {
  uint64_t from = 0, count = 2200, threads = 2, seconds = 0;
  bool show = false;
};

/// What has been seen, by all threads.
class Tally {
public:
  void add(const Case &given, const Outcome &outcome);
  void addWrong(const Case &given, const Outcome &outcome, const Case &small,
                const Outcome &left);
  void print();
  /// Pairs of features that can meet and have not.
  std::vector<std::string> missing() const;

  std::atomic<uint64_t> next = 0;
  std::mutex mutex;
  Placements placements;
  std::map<std::string, std::map<std::string, unsigned>> pairs;
  std::map<std::string, unsigned> reasons;
  std::vector<std::string> wrong;
  uint64_t equal = 0, refused = 0, uneven = 0;
};

} // namespace

static Campaign campaign;

void Tally::add(const Case &given, const Outcome &outcome) {
  std::lock_guard<std::mutex> lock(mutex);
  if (outcome.kind == Outcome::Kind::Refused) {
    ++refused;
    llvm::StringRef text = outcome.text;
    ++reasons[text.substr(text.find("error: ")).take_front(60).str()];
    return;
  }
  ++equal;
  uneven += given.isUneven();
  std::set<std::string> features = given.features();
  for (const std::string &a : features)
    for (const std::string &b : features)
      ++pairs[a][b];
}

void Tally::addWrong(const Case &given, const Outcome &outcome,
                     const Case &small, const Outcome &left) {
  std::lock_guard<std::mutex> lock(mutex);
  wrong.push_back("seed " + std::to_string(given.seed) + "\n" +
                  given.reproduction() + outcome.text + "\nshrunk to\n" +
                  small.reproduction() + left.text + "\n");
  llvm::errs() << wrong.back();
}

//===----------------------------------------------------------------------===//
// Coverage
//===----------------------------------------------------------------------===//

static std::vector<std::string> allFeatures() {
  std::vector<std::string> list = {
      "tp", "sp", "cp-all-gather", "cp-ulysses", "cp-ring", "ep",     "dp",
      "pp", "mb", "gpipe",         "capacity",   "dropout", "uneven", "rule"};
  if (hasZero())
    list.insert(list.end(), {"zero1", "zero2", "zero3"});
  return list;
}

/// False where no case can have both: two kinds of one thing, or experts and
/// dropout, which no architecture has together.
static bool canMeet(llvm::StringRef a, llvm::StringRef b) {
  for (llvm::StringRef kind : {"cp-", "zero"})
    if (a != b && a.starts_with(kind) && b.starts_with(kind))
      return false;
  bool experts = a == "ep" || a == "capacity" || b == "ep" || b == "capacity";
  return !experts || (a != "dropout" && b != "dropout");
}

std::vector<std::string> Tally::missing() const {
  std::vector<std::string> list;
  for (const std::string &a : allFeatures())
    for (const std::string &b : allFeatures()) {
      auto row = pairs.find(a);
      if (canMeet(a, b) && (row == pairs.end() || !row->second.count(b)))
        list.push_back(a + " with " + b);
    }
  return list;
}

template <class Names>
static void
printTable(const std::map<std::string, std::map<std::string, unsigned>> &table,
           const Names &columns) {
  llvm::outs() << llvm::left_justify("", 26);
  for (const std::string &column : columns)
    llvm::outs() << llvm::right_justify(column, 14);
  llvm::outs() << '\n';
  for (const auto &[name, row] : table) {
    llvm::outs() << llvm::left_justify(name, 26);
    for (const std::string &column : columns) {
      auto found = row.find(column);
      llvm::outs() << llvm::right_justify(
          found == row.end() ? "-" : std::to_string(found->second), 14);
    }
    llvm::outs() << '\n';
  }
}

void Tally::print() {
  std::set<std::string> axes;
  for (const auto &[op, row] : placements)
    for (const auto &[axis, count] : row)
      axes.insert(axis);
  llvm::outs() << "ops by placement (of every eighth case):\n";
  printTable(placements, axes);
  llvm::outs() << "strategies that met:\n";
  printTable(pairs, allFeatures());
  for (const auto &[reason, count] : reasons)
    llvm::outs() << "refused " << count << ": " << reason << '\n';
  llvm::outs() << equal << " cases equal, " << uneven
               << " of them with unequal parts, " << refused << " refused, "
               << wrong.size() << " wrong\n";
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

static void work(Tally &tally, const std::string &folder,
                 std::chrono::steady_clock::time_point end) {
  for (;;) {
    uint64_t index = tally.next++;
    if (index >= campaign.count ||
        (campaign.seconds && std::chrono::steady_clock::now() > end))
      return;
    Case given = randomCase(campaign.from + index);
    llvm::PrettyStackTraceFormat crash("seed %llu",
                                       (unsigned long long)given.seed);
    if (campaign.show)
      llvm::outs() << given.reproduction();
    Outcome outcome = run(given, folder);
    if (outcome.kind == Outcome::Kind::Wrong) {
      Case small = shrink(given, folder);
      tally.addWrong(given, outcome, small, run(small, folder));
      continue;
    }
    tally.add(given, outcome);
    if (outcome.kind == Outcome::Kind::Equal && index % 8 == 0) {
      Placements found;
      addPlacements(given, folder, found);
      std::lock_guard<std::mutex> lock(tally.mutex);
      for (const auto &[op, row] : found)
        for (const auto &[axis, count] : row)
          tally.placements[op][axis] += count;
    }
  }
}

TEST(Fuzz, PartitionedIsWhole) {
  Tally tally;
  auto end =
      std::chrono::steady_clock::now() + std::chrono::seconds(campaign.seconds);
  std::vector<std::thread> threads;
  std::vector<std::string> folders;
  for (uint64_t i = 0; i < campaign.threads; ++i) {
    llvm::SmallString<128> folder;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("parc-fuzz", folder));
    folders.push_back(folder.str().str());
    threads.emplace_back(
        [&tally, end, own = folders.back()] { work(tally, own, end); });
  }
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &folder : folders)
    llvm::sys::fs::remove_directories(folder);
  tally.print();
  EXPECT_TRUE(tally.wrong.empty());
  if (campaign.count < Campaign().count)
    return;
  EXPECT_GE(tally.equal, campaign.seconds ? 1 : 2000);
  EXPECT_GE(tally.uneven * 4, tally.equal);
  for (const std::string &pair : tally.missing())
    ADD_FAILURE() << "no case has " << pair;
}

int main(int argc, char **argv) {
  llvm::sys::PrintStackTraceOnErrorSignal(argv[0]);
  llvm::EnablePrettyStackTrace();
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    llvm::StringRef flag = argv[i];
    uint64_t *number = flag == "--from"      ? &campaign.from
                       : flag == "--count"   ? &campaign.count
                       : flag == "--threads" ? &campaign.threads
                       : flag == "--seconds" ? &campaign.seconds
                                             : nullptr;
    if (flag == "--show") {
      campaign.show = true;
      continue;
    }
    if (!number || i + 1 == argc ||
        llvm::StringRef(argv[++i]).getAsInteger(10, *number)) {
      llvm::errs() << "usage: " << argv[0]
                   << " [--from N] [--count N] [--threads N] [--seconds N] "
                      "[--show]\n";
      return 2;
    }
  }
  return RUN_ALL_TESTS();
}
