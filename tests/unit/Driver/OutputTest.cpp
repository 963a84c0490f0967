//===- OutputTest.cpp - Outputs -------------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Outputs are whole or absent, and what parc did not make stays.
///
//===----------------------------------------------------------------------===//

#include "parc/Driver/Output.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

using namespace mlir::parc::driver;
namespace fs = llvm::sys::fs;

namespace {

class OutputTest : public testing::Test {
protected:
  void SetUp() override {
    llvm::SmallString<128> path;
    ASSERT_FALSE(fs::createUniqueDirectory("parc-output", path));
    root = path.str().str();
  }
  void TearDown() override { ASSERT_FALSE(fs::remove_directories(root)); }

  std::string at(llvm::StringRef name) { return root + "/" + name.str(); }
  void put(llvm::StringRef name, llvm::StringRef text) {
    std::error_code code;
    llvm::raw_fd_ostream os(at(name), code);
    ASSERT_FALSE(code);
    os << text;
  }
  std::string get(llvm::StringRef name) {
    auto buffer = llvm::MemoryBuffer::getFile(at(name));
    return buffer ? (*buffer)->getBuffer().str() : "absent";
  }
  size_t entries() {
    std::error_code code;
    size_t count = 0;
    for (fs::directory_iterator it(root, code), end; it != end && !code;
         it.increment(code))
      ++count;
    return count;
  }

  std::string root, errors;
  llvm::raw_string_ostream os{errors};
  Reporter reporter{os, false};
};

TEST_F(OutputTest, AppearsOnCommitOnly) {
  {
    auto folder = OutputFolder::create(at("out"), false, Place(), reporter);
    ASSERT_TRUE(folder);
    EXPECT_TRUE(folder->write("src/a.txt", "a"));
    EXPECT_FALSE(fs::exists(at("out")));
  }
  EXPECT_EQ(entries(), 0u);
  auto folder = OutputFolder::create(at("out"), false, Place(), reporter);
  ASSERT_TRUE(folder);
  EXPECT_TRUE(folder->write("src/a.txt", "a"));
  EXPECT_TRUE(folder->commit());
  EXPECT_EQ(get("out/src/a.txt"), "a");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(OutputTest, ReplacesItsOwnWhole) {
  for (const char *name : {"first", "second"}) {
    auto folder = OutputFolder::create(at("out"), false, Place(), reporter);
    ASSERT_TRUE(folder) << errors;
    EXPECT_TRUE(folder->write(name, "x"));
    EXPECT_TRUE(folder->write(kManifestName, "{\"parc\": \"0\"}"));
    EXPECT_TRUE(folder->commit());
  }
  EXPECT_FALSE(fs::exists(at("out/first")));
  EXPECT_TRUE(fs::exists(at("out/second")));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(OutputTest, ForeignFolderNeedsForce) {
  ASSERT_FALSE(fs::create_directory(at("out")));
  put("out/mine", "x");
  EXPECT_FALSE(OutputFolder::create(at("out"), false, Place(), reporter));
  EXPECT_NE(errors.find("was not made by parc"), std::string::npos);
  EXPECT_EQ(get("out/mine"), "x");
  auto folder = OutputFolder::create(at("out"), true, Place(), reporter);
  ASSERT_TRUE(folder);
  EXPECT_TRUE(folder->commit());
  EXPECT_EQ(get("out/mine"), "absent");
}

TEST_F(OutputTest, RefusesWhatIsNoFolder) {
  put("file", "x");
  EXPECT_FALSE(OutputFolder::create(at("file"), true, Place(), reporter));
  EXPECT_FALSE(OutputFolder::create(at("file/out"), true, Place(), reporter));
  EXPECT_FALSE(
      OutputFolder::create(at("no/such/out"), true, Place(), reporter));
  ASSERT_FALSE(fs::create_link(at("file"), at("link")));
  EXPECT_FALSE(OutputFolder::create(at("link"), true, Place(), reporter));
  EXPECT_EQ(get("file"), "x");
}

TEST_F(OutputTest, FilesFollowTheSameRule) {
  std::string text = kTextMarker.str() + "\nfirst";
  EXPECT_TRUE(writeOutputFile(at("m.mlir"), text, false, Place(), reporter));
  EXPECT_TRUE(writeOutputFile(at("m.mlir"), "mine", false, Place(), reporter));
  EXPECT_EQ(get("m.mlir"), "mine");
  EXPECT_FALSE(writeOutputFile(at("m.mlir"), text, false, Place(), reporter));
  EXPECT_EQ(get("m.mlir"), "mine");
  EXPECT_TRUE(writeOutputFile(at("m.mlir"), text, true, Place(), reporter));
  EXPECT_EQ(entries(), 1u);
}

} // namespace
