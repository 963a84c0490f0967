//===- MeshTest.cpp - Tests of meshes and rank grids ----------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Parsing with located errors, placement of ranks, groups.
///
//===----------------------------------------------------------------------===//

#include "parc/Pipeline/RankGrid.h"

#include "gtest/gtest.h"

#include <set>

using namespace mlir::parc;

namespace {

Mesh parsed(llvm::StringRef text) {
  TextError error;
  std::optional<Mesh> mesh = Mesh::parse(text, error);
  EXPECT_TRUE(mesh.has_value()) << text.str() << ": " << error.message;
  return mesh.value_or(Mesh());
}

RankGrid gridOf(llvm::StringRef text,
                llvm::StringRef order = RankGrid::defaultOrder) {
  TextError error;
  std::optional<RankGrid> grid = RankGrid::get(parsed(text), order, error);
  EXPECT_TRUE(grid.has_value()) << error.message;
  return grid ? *grid : RankGrid::rowMajor(Mesh());
}

TEST(Mesh, ParsesBothForms) {
  Mesh mesh = parsed("8x16x4");
  EXPECT_EQ(mesh.str(), "tp=8,pp=16,dp=4");
  EXPECT_EQ(mesh.devices(), 512);
  EXPECT_TRUE(mesh == parsed("tp=8,pp=16,dp=4"));
  EXPECT_TRUE(mesh == parsed(" tp=8, pp = 16 ,dp=4 "));
  EXPECT_EQ(parsed("pp=3").size("pp"), 3);
  EXPECT_EQ(parsed("pp=3").size("tp"), 1);
  EXPECT_EQ(parsed("cp=2,dp=3").devices(), 6);
  EXPECT_EQ(parsed("1048576x1x1").devices(), Mesh::maxDevices);
  EXPECT_EQ(parsed("2x3x4").str(), "tp=2,pp=3,dp=4");
}

struct BadMesh {
  const char *text;
  const char *message;
  size_t offset;
  size_t length;
};

TEST(Mesh, LocatesErrors) {
  const BadMesh cases[] = {
      {"", "expected a mesh, got nothing", 0, 0},
      {"  ", "expected a mesh, got nothing", 0, 2},
      {"tpp=8", "unknown mesh axis 'tpp'", 0, 3},
      {"tp=8,sp=2", "unknown mesh axis 'sp'", 5, 2},
      {"tp=8,tp=2", "mesh axis 'tp' is given twice: 8 and 2", 5, 4},
      {"tp=0", "expected a size of at least 1 for axis 'tp', got 0", 3, 1},
      {"tp=8,pp=-2", "expected a size of at least 1 for axis 'pp', got -2", 8,
       2},
      {"8x0x4", "expected a size of at least 1 for axis 'pp', got 0", 2, 1},
      {"-1x2x3", "expected a size of at least 1 for axis 'tp', got -1", 0, 2},
      {"8x16x4x2", "expected three sizes, tp x pp x dp, got 4", 7, 1},
      {"8x16", "expected three sizes, tp x pp x dp, got 2", 0, 4},
      {"8x16x", "expected a size for axis 'dp', got nothing", 5, 0},
      {"8x1 6x4", "expected a size for axis 'pp', got '1 6'", 2, 3},
      {"tp=8,", "expected axis=size, got nothing", 5, 0},
      {"tp", "expected axis=size, got 'tp'", 0, 2},
      {"=8", "expected an axis name before '='", 0, 1},
      {"tp=", "expected a size for axis 'tp', got nothing", 3, 0},
      {"tp=8e3", "expected a size for axis 'tp', got '8e3'", 3, 3},
      {"tp=+8", "expected a size for axis 'tp', got '+8'", 3, 2},
      {"tp=1.5", "expected a size for axis 'tp', got '1.5'", 3, 3},
      {"tp=\n", "expected a size for axis 'tp', got '\\0A'", 3, 1},
      {"tp=99999999999999999999",
       "size of axis 'tp' is too large: expected at most 1048576, got "
       "99999999999999999999",
       3, 20},
      {"1024x1024x2",
       "mesh needs too many devices: expected at most 1048576, got "
       "tp=1024 * pp=1024 * dp=2",
       10, 1},
      {"tp=1048576,pp=1048576,dp=1048576,cp=1048576",
       "mesh needs too many devices: expected at most 1048576, got "
       "tp=1048576 * pp=1048576",
       11, 10},
  };
  for (const BadMesh &bad : cases) {
    TextError error;
    EXPECT_FALSE(Mesh::parse(bad.text, error).has_value()) << bad.text;
    EXPECT_EQ(error.message, bad.message) << bad.text;
    EXPECT_EQ(error.offset, bad.offset) << bad.text;
    EXPECT_EQ(error.length, bad.length) << bad.text;
    EXPECT_FALSE(error.help.empty()) << bad.text;
  }
}

TEST(Mesh, SuggestsTheNearestName) {
  TextError error;
  EXPECT_FALSE(Mesh::parse("tpp=8", error));
  EXPECT_EQ(error.help, "did you mean 'tp'? known axes: tp, cp, dp, pp");
  EXPECT_FALSE(Mesh::parse("DP=8", error));
  EXPECT_EQ(error.help, "did you mean 'dp'? known axes: tp, cp, dp, pp");
  EXPECT_FALSE(Mesh::parse("pipeline=8", error));
  EXPECT_EQ(error.help, "known axes: tp, cp, dp, pp");
}

TEST(Mesh, HostileTextIsQuotedAndCut) {
  TextError error;
  std::string text(100000, 'q');
  EXPECT_FALSE(Mesh::parse(text + "=2", error));
  EXPECT_LT(error.message.size(), 100u);
  EXPECT_FALSE(Mesh::parse("\x1b[31m=2", error));
  EXPECT_EQ(error.message, "unknown mesh axis '\\1B[31m'");
}

TEST(Mesh, GetChecksFreeNamesAndCaps) {
  TextError error;
  EXPECT_TRUE(Mesh::get({{"x", 2}, {"y", 3}}, error));
  EXPECT_FALSE(Mesh::get({{"", 2}}, error));
  EXPECT_FALSE(Mesh::get({{"x", 2}, {"x", 3}}, error));
  EXPECT_EQ(error.offset, 1u);
  std::vector<MeshAxis> axes;
  for (int i = 0; i < 17; ++i)
    axes.push_back({"a" + std::to_string(i), 1});
  EXPECT_FALSE(Mesh::get(axes, error));
  EXPECT_EQ(error.message, "expected at most 16 mesh axes, got 17");
  axes.pop_back();
  EXPECT_TRUE(Mesh::get(axes, error));
}

TEST(RankGrid, MegatronGroups) {
  RankGrid grid = gridOf("8x16x4");
  auto text = [&](int64_t rank, std::initializer_list<const char *> names) {
    llvm::SmallVector<size_t> axes;
    for (const char *name : names)
      axes.push_back(*grid.mesh().indexOf(name));
    return grid.group(rank, axes).str();
  };
  EXPECT_EQ(text(0, {"tp"}), "0-7");
  EXPECT_EQ(text(0, {"dp"}), "0 8 16 24");
  EXPECT_EQ(text(0, {"pp"}), "0 32 ... 480");
  EXPECT_EQ(text(511, {"tp"}), "504-511");
  EXPECT_EQ(text(511, {"dp"}), "487 495 503 511");
  EXPECT_EQ(text(0, {"tp", "dp"}), "0-31");
  EXPECT_EQ(text(0, {"pp", "tp"}), "0-7 32-39 ... 480-487");
  EXPECT_EQ(text(77, {"tp", "pp", "dp"}), "0-511");
  EXPECT_EQ(text(77, {}), "77");
}

TEST(RankGrid, RankOrderDecidesNotTheWrittenOrder) {
  EXPECT_EQ(gridOf("pp=2,tp=4").orderText(), "tp-pp");
  RankGrid grid = gridOf("2x3x4", "pp-dp-tp");
  EXPECT_EQ(grid.group(0, {*grid.mesh().indexOf("pp")}).str(), "0-2");
  EXPECT_EQ(grid.group(0, {*grid.mesh().indexOf("tp")}).str(), "0 12");
  RankGrid rows = RankGrid::rowMajor(parsed("2x3x4"));
  EXPECT_EQ(rows.orderText(), "dp-pp-tp");
  EXPECT_EQ(rows.rank({1, 2, 3}), 23);
  EXPECT_EQ(rows.rank({1, 0, 0}), 12);
}

TEST(RankGrid, LocatesErrorsInTheOrder) {
  const BadMesh cases[] = {
      {"tp-dp", "rank order 'tp-dp' does not name axis 'pp'", 5, 0},
      {"tp-dp-tp-pp", "axis 'tp' is named twice in the rank order", 6, 2},
      {"tp-ddp-pp", "unknown axis 'ddp' in the rank order", 3, 3},
      {"tp--dp-pp", "expected an axis name in the rank order", 3, 0},
      {"", "expected an axis name in the rank order", 0, 0},
      {"tp-cp-dp-cp-pp", "axis 'cp' is named twice in the rank order", 9, 2},
  };
  for (const BadMesh &bad : cases) {
    TextError error;
    EXPECT_FALSE(RankGrid::get(parsed("2x2x2"), bad.text, error));
    EXPECT_EQ(error.message, bad.message);
    EXPECT_EQ(error.offset, bad.offset) << bad.text;
    EXPECT_EQ(error.length, bad.length) << bad.text;
  }
}

/// Groups against their definition: same coordinates outside the set.
TEST(RankGrid, GroupsPartitionTheRanks) {
  for (const char *order : {"tp-cp-dp-pp", "pp-dp-cp-tp", "cp-tp-pp-dp"}) {
    RankGrid grid = gridOf("tp=2,pp=3,dp=4,cp=1", order);
    for (unsigned set = 0; set < 16; ++set) {
      llvm::SmallVector<size_t> axes;
      for (size_t axis = 0; axis < 4; ++axis)
        if (set >> axis & 1)
          axes.push_back(axis);
      std::set<int64_t> firsts;
      for (int64_t rank = 0; rank < grid.devices(); ++rank) {
        auto here = grid.coordinate(rank);
        EXPECT_EQ(grid.rank(here), rank);
        std::vector<int64_t> expected;
        for (int64_t other = 0; other < grid.devices(); ++other) {
          auto there = grid.coordinate(other);
          bool same = true;
          for (size_t axis = 0; axis < 4; ++axis)
            same &= (set >> axis & 1) || here[axis] == there[axis];
          if (same)
            expected.push_back(other);
        }
        RankGroup group = grid.group(rank, axes);
        auto members = group.members();
        EXPECT_EQ(std::vector<int64_t>(members.begin(), members.end()),
                  expected);
        EXPECT_EQ(members[grid.indexInGroup(rank, axes)], rank);
        firsts.insert(group.first);
      }
      EXPECT_EQ(int64_t(firsts.size()), grid.numGroups(axes));
    }
  }
}

} // namespace
