//===- WeightsTest.cpp - Values from safetensors files --------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Files written here, whole and faulty, against the parameters of a small
/// model.
///
//===----------------------------------------------------------------------===//

#include "parc/Import/Weights.h"
#include "ImportTesting.h"
#include "parc/Import/Model.h"
#include "parc/safetensors.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <map>

using namespace mlir;
using namespace mlir::parc;
using ::parc::FileType;

namespace {
/// Tensors of a file by name; element i of each has the value i.
using Tensors = std::map<std::string, std::pair<FileType, ::parc::Shape>>;

class WeightsTest : public testing::Test {
protected:
  WeightsTest() {
    DialectRegistry registry;
    registerImportDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("parc-weights", folder));
  }
  ~WeightsTest() override { llvm::sys::fs::remove_directories(folder); }

  OwningOpRef<ModuleOp> build(StringRef name) {
    FailureOr<ModelConfig> config =
        readModelConfig(&context, readTestConfig(name), "config.json");
    FailureOr<OwningOpRef<ModuleOp>> module =
        buildModel(&context, *config, {4, 16});
    return std::move(*module);
  }

  /// What a checkpoint of `module` holds; boxes give their whole tensor.
  static Tensors getTensors(ModuleOp module) {
    Tensors tensors;
    for (ParamOp param : module.getOps<ParamOp>()) {
      ArrayRef<int64_t> shape = param.getCheckpoint()->getShape();
      if (shape.empty())
        shape = param.getTensorType().getShape();
      int64_t layers = static_cast<int64_t>(param.getLayers().value_or(1));
      for (int64_t layer = 0; layer < layers; ++layer)
        tensors[param.getCheckpointName(layer)] = {
            FileType::F32, ::parc::Shape(shape.begin(), shape.end())};
    }
    return tensors;
  }

  std::string path(StringRef name) const {
    SmallString<128> path(folder);
    llvm::sys::path::append(path, name);
    return path.str().str();
  }

  std::string write(StringRef name, const Tensors &tensors) {
    std::vector<std::vector<char>> bytes;
    std::vector<::parc::TensorData> data;
    for (const auto &[tensor, what] : tensors) {
      int64_t elements = 1;
      for (int64_t size : what.second)
        elements *= size;
      std::vector<char> &own = bytes.emplace_back(
          static_cast<size_t>(elements) * ::parc::sizeOf(what.first));
      if (what.first == FileType::F32)
        for (int64_t i = 0; i < elements; ++i) {
          float value = static_cast<float>(i);
          std::memcpy(own.data() + 4 * i, &value, 4);
        }
      data.push_back({{tensor, what.first, what.second}, own.data()});
    }
    ::parc::Status status = ::parc::writeSafetensors(path(name), data);
    EXPECT_TRUE(status.ok()) << status.message();
    return path(name);
  }

  void writeText(StringRef name, StringRef text) {
    std::error_code error;
    llvm::raw_fd_ostream(path(name), error) << text;
    EXPECT_FALSE(error);
  }

  /// What opening `file` and checking it against `module` says.
  std::string diagnose(StringRef file, ModuleOp module) {
    Collected collected(context);
    FailureOr<Weights> weights = Weights::open(&context, file);
    if (succeeded(weights)) {
      bool good = succeeded(weights->check(module));
      EXPECT_EQ(good, !StringRef(collected.text).contains("error: "));
    }
    return collected.text;
  }

  MLIRContext context;
  SmallString<128> folder;
};

TEST_F(WeightsTest, WholeFilesOfEveryArchitecture) {
  for (StringRef name : {"tiny-gpt2", "tiny-llama", "tiny-mistral",
                         "tiny-qwen2", "tiny-qwen3"}) {
    OwningOpRef<ModuleOp> module = build(name);
    std::string file = write("model.safetensors", getTensors(*module));
    EXPECT_EQ(diagnose(file, *module), "") << name.str();
    EXPECT_EQ(findWeights(folder), file);
  }
}

TEST_F(WeightsTest, ReadsABoxOfAFusedTensor) {
  OwningOpRef<ModuleOp> module = build("tiny-gpt2");
  std::string file = write("model.safetensors", getTensors(*module));
  FailureOr<Weights> weights = Weights::open(&context, file);
  ASSERT_TRUE(succeeded(weights));
  // Rows 1 and 2, columns 3 to 5 of k, which begins at column 32 of 96.
  double values[6] = {};
  ASSERT_TRUE(
      succeeded(weights->read(module->lookupSymbol<ParamOp>("k"), 2, {1, 3},
                              {2, 3}, ::parc::DType::f64, values)));
  const double expected[] = {131, 132, 133, 227, 228, 229};
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(values[i], expected[i]);
  float bias[2] = {};
  ASSERT_TRUE(succeeded(weights->read(module->lookupSymbol<ParamOp>("v_bias"),
                                      0, {30}, {2}, ::parc::DType::f32, bias)));
  EXPECT_EQ(bias[0], 94.0f);
  EXPECT_EQ(bias[1], 95.0f);
  Collected collected(context);
  EXPECT_TRUE(
      failed(weights->read(module->lookupSymbol<ParamOp>("k"), 0, {0, 90},
                           {1, 7}, ::parc::DType::f64, values)));
  EXPECT_NE(collected.text.find("is not inside"), std::string::npos);
}

TEST_F(WeightsTest, NamesWithoutTheirFirstPart) {
  OwningOpRef<ModuleOp> module = build("tiny-gpt2");
  Tensors tensors;
  for (auto &[name, what] : getTensors(*module))
    tensors[StringRef(name).split('.').second.str()] = what;
  tensors["h.0.attn.bias"] = {FileType::F32, {1, 1, 64, 64}};
  EXPECT_EQ(diagnose(write("a.safetensors", tensors), *module), "");
}

TEST_F(WeightsTest, MissingAndUnused) {
  OwningOpRef<ModuleOp> module = build("tiny-llama");
  Tensors tensors = getTensors(*module);
  auto moved = tensors.extract("model.layers.1.mlp.up_proj.weight");
  moved.key() = "model.layers.1.mlp.upproj.weight";
  tensors.insert(std::move(moved));
  EXPECT_EQ(diagnose(write("a.safetensors", tensors), *module),
            "1:1: error: tensor 'model.layers.1.mlp.up_proj.weight' "
            "(parameter 'up'): expected 56x32, got none; the nearest is "
            "'model.layers.1.mlp.upproj.weight'\n");
  tensors = getTensors(*module);
  tensors["model.layers.0.moon.weight"] = {FileType::F32, {2}};
  tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = {FileType::F32,
                                                             {4}};
  EXPECT_EQ(diagnose(write("b.safetensors", tensors), *module),
            "1:1: warning: no parameter uses 'model.layers.0.moon.weight'\n");
}

TEST_F(WeightsTest, TiedCopyIsNotUnused) {
  OwningOpRef<ModuleOp> module = build("tiny-qwen2");
  Tensors tensors = getTensors(*module);
  tensors["lm_head.weight"] = {FileType::F32, {97, 32}};
  EXPECT_EQ(diagnose(write("a.safetensors", tensors), *module), "");
}

TEST_F(WeightsTest, ShapesAndTypes) {
  OwningOpRef<ModuleOp> module = build("tiny-llama");
  Tensors tensors = getTensors(*module);
  tensors["model.norm.weight"].second = {31};
  tensors["lm_head.weight"].first = FileType::I32;
  EXPECT_EQ(diagnose(write("a.safetensors", tensors), *module),
            "1:1: error: tensor 'model.norm.weight' (parameter 'final_norm'): "
            "expected 32, got 31\n"
            "1:1: note: tensor 'lm_head.weight' (parameter 'head'): expected "
            "F64, F32, F16 or BF16, got I32\n");
}

TEST_F(WeightsTest, ManyFaultsAreCounted) {
  OwningOpRef<ModuleOp> module = build("tiny-llama");
  std::string text = diagnose(write("a.safetensors", {}), *module);
  EXPECT_EQ(StringRef(text).count("\n"), 6u) << text;
  EXPECT_TRUE(StringRef(text).ends_with("note: and 25 more like these\n"))
      << text;
}

TEST_F(WeightsTest, Shards) {
  OwningOpRef<ModuleOp> module = build("tiny-llama");
  Tensors parts[2];
  std::string map;
  int which = 0;
  for (auto &[name, what] : getTensors(*module)) {
    which = 1 - which;
    parts[which][name] = what;
    map += (map.empty() ? "" : ", ") + ("\"" + name + "\": \"part-") +
           std::to_string(which) + ".safetensors\"";
  }
  write("part-0.safetensors", parts[0]);
  write("part-1.safetensors", parts[1]);
  writeText("model.safetensors.index.json", "{\"weight_map\": {" + map + "}}");
  std::optional<std::string> index = findWeights(folder);
  ASSERT_TRUE(index.has_value());
  EXPECT_EQ(diagnose(*index, *module), "");

  writeText("a.json", "{\"weight_map\": {\"x\": \"../other\"}}");
  EXPECT_EQ(diagnose(path("a.json"), *module),
            "1:22: error: expected the name of a file beside the index for "
            "tensor 'x'\n");
  writeText("b.json", "{}");
  EXPECT_EQ(diagnose(path("b.json"), *module),
            "1:1: error: expected an object 'weight_map', got none\n");
  write("part-0.safetensors", parts[1]);
  EXPECT_EQ(diagnose(*index, *module),
            "1:1: error: tensor 'lm_head.weight' is in two shards\n");
}

TEST_F(WeightsTest, Unreadable) {
  OwningOpRef<ModuleOp> module = build("tiny-llama");
  writeText("short.safetensors", "abc");
  EXPECT_TRUE(StringRef(diagnose(path("short.safetensors"), *module))
                  .starts_with("1:1: error: "));
  EXPECT_TRUE(StringRef(diagnose(path("none.safetensors"), *module))
                  .starts_with("1:1: error: "));
  EXPECT_TRUE(StringRef(diagnose(path("none.json"), *module))
                  .starts_with("1:1: error: cannot read: "));
  EXPECT_EQ(findWeights(folder), std::nullopt);
}
} // namespace
