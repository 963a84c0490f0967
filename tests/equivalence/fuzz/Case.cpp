//===- Case.cpp - A random model on a random mesh -------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Draws cases, and prints them.
///
//===----------------------------------------------------------------------===//

#include "Case.h"
#include "parc/Driver/PlanFile.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <algorithm>

using namespace mlir::parc;
using namespace mlir::parc::fuzz;

int64_t Random::below(int64_t bound) {
  uint64_t x = state += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return static_cast<int64_t>((x ^ (x >> 31)) % static_cast<uint64_t>(bound));
}

bool mlir::parc::fuzz::hasZero() {
  static const bool has = llvm::any_of(
      driver::planKeys(), [](const auto &key) { return key.name == "zero"; });
  return has;
}

//===----------------------------------------------------------------------===//
// Drawing
//===----------------------------------------------------------------------===//

/// Most ranks of a case: each is a thread.
static constexpr int64_t kMostRanks = 16;

static void drawModel(Random &random, Case &drawn) {
  static const char *const kinds[] = {
      "llama",   "llama",   "qwen2",   "qwen3",       "gpt2",       "gpt2",
      "mistral", "mixtral", "mixtral", "deepseek_v3", "deepseek_v3"};
  drawn.architecture = kinds[random.below(std::size(kinds))];
  Sizes &sizes = drawn.sizes;
  sizes.layers = random.from(1, 3);
  sizes.keyHeads = random.from(1, 3);
  sizes.heads = sizes.keyHeads * random.from(1, sizes.keyHeads > 2 ? 1 : 2);
  if (drawn.architecture == "gpt2" || drawn.architecture == "deepseek_v3")
    sizes.keyHeads = sizes.heads;
  sizes.headDim = 2 * random.from(1, 2);
  sizes.hidden = random.from(2, 7);
  if (drawn.architecture == "gpt2")
    sizes.hidden = sizes.heads * sizes.headDim;
  sizes.ffn = random.from(3, 9);
  sizes.vocabulary = random.from(5, 11);
  sizes.experts = random.from(1, 3) * 2;
  sizes.perToken = random.from(1, 2);
  sizes.expertFfn = random.from(2, 5);
  // One layer at least has experts.
  sizes.dense = std::min(random.below(2), sizes.layers - 1);
  drawn.tied = random.chance(30);
  drawn.dropout = drawn.architecture == "gpt2" && random.chance(60);
}

static void drawMesh(Random &random, Case &drawn) {
  auto axis = [&](int64_t share, int64_t most) {
    return random.chance(share) ? random.from(2, most) : 1;
  };
  do {
    drawn.tp = axis(55, 4);
    drawn.cp = axis(45, 3);
    drawn.dp = axis(45, drawn.hasExperts() ? 4 : 3);
    drawn.pp = std::min(axis(40, 3), drawn.sizes.layers);
  } while (drawn.ranks() > kMostRanks);
  drawn.microBatches = random.from(1, 3);
  drawn.schedule = random.chance(50) ? "gpipe" : "1f1b";
  std::vector<std::string> order = {"tp", "cp", "dp", "pp"};
  for (size_t i = random.chance(25) ? 3 : 0; i > 0; --i)
    std::swap(order[i], order[random.below(static_cast<int64_t>(i) + 1)]);
  drawn.rankOrder = order[0] + "-" + order[1] + "-" + order[2] + "-" + order[3];
}

/// Sizes of the expert groups that a mesh allows: those of cp first, then dp.
static std::vector<int64_t> expertGroups(const Case &drawn) {
  std::vector<int64_t> list;
  for (int64_t ep = 2; ep <= drawn.sizes.experts; ++ep) {
    bool fits = ep <= drawn.cp
                    ? drawn.cp % ep == 0
                    : ep % drawn.cp == 0 && drawn.dp % (ep / drawn.cp) == 0;
    if (fits && drawn.sizes.experts % ep == 0)
      list.push_back(ep);
  }
  return list;
}

static void drawFlags(Random &random, Case &drawn) {
  static const char *const kinds[] = {"all-gather", "ulysses", "ring"};
  drawn.contextKind = kinds[random.below(3)];
  drawn.sp = drawn.tp > 1 && random.chance(60);
  drawn.capacity = drawn.hasExperts() && random.chance(25);
  if (drawn.hasExperts() && (drawn.tp == 1 || drawn.sp))
    if (auto list = expertGroups(drawn); !list.empty() && random.chance(80))
      drawn.ep = list[random.below(static_cast<int64_t>(list.size()))];
  if (hasZero() && drawn.dp * drawn.cp > 1)
    drawn.zero = random.below(4);
  if (random.chance(15)) {
    static const char *const axes[] = {"tp", "dp", "cp"};
    drawn.ruleAxis = axes[random.below(3)];
    drawn.ruleParameter = random.below(1000);
    drawn.ruleDim = random.below(8);
  }
}

Case mlir::parc::fuzz::randomCase(uint64_t seed) {
  Random random(seed * 7919 + 17);
  Case drawn;
  drawn.seed = seed;
  drawModel(random, drawn);
  drawMesh(random, drawn);
  drawFlags(random, drawn);
  Sizes &sizes = drawn.sizes;
  // Enough for one of each to every rank; mostly not the same to all.
  sizes.batch = drawn.dp * drawn.microBatches + random.below(3);
  sizes.sequence = drawn.cp * (drawn.sp ? drawn.tp : 1) + random.from(1, 4);
  bool exchanged = drawn.cp > 1 && drawn.contextKind == "ulysses";
  int64_t headParts = drawn.tp * (exchanged ? drawn.cp : 1);
  if (sizes.heads < headParts && random.chance(90)) {
    int64_t members = sizes.heads / sizes.keyHeads;
    sizes.heads = headParts + random.below(2);
    sizes.heads += sizes.heads % members;
    bool equal =
        drawn.architecture == "gpt2" || drawn.architecture == "deepseek_v3";
    sizes.keyHeads = equal ? sizes.heads : sizes.heads / members;
    if (drawn.architecture == "gpt2")
      sizes.hidden = sizes.heads * sizes.headDim;
  }
  sizes.ffn = std::max(sizes.ffn, drawn.tp);
  // ZeRO 3 splits every parameter, the smallest too.
  if (drawn.zero == 3) {
    int64_t parts = drawn.dp * drawn.cp;
    sizes.hidden = std::max(sizes.hidden, parts);
    sizes.headDim = std::max(sizes.headDim, parts + parts % 2);
    sizes.ffn = std::max(sizes.ffn, parts * drawn.tp);
    if (drawn.architecture == "gpt2")
      sizes.hidden = sizes.heads * sizes.headDim;
  }
  // An expert has room for a token of each sequence.
  while (3 * sizes.sequence * sizes.perToken < 2 * sizes.experts)
    ++sizes.sequence;
  return drawn;
}

//===----------------------------------------------------------------------===//
// What a case is
//===----------------------------------------------------------------------===//

bool Case::isUneven() const {
  int64_t context = cp * (sp ? tp : 1);
  return sizes.batch % (dp * microBatches) || sizes.sequence % context ||
         sizes.heads % tp || sizes.keyHeads % tp || sizes.ffn % tp ||
         sizes.vocabulary % tp || sizes.layers % pp;
}

std::set<std::string> Case::features() const {
  std::set<std::string> found;
  auto add = [&](bool has, const std::string &name) {
    if (has)
      found.insert(name);
  };
  add(tp > 1, "tp");
  add(sp, "sp");
  add(cp > 1, "cp-" + contextKind);
  add(ep > 1, "ep");
  add(dp > 1, "dp");
  add(pp > 1, "pp");
  add(microBatches > 1, "mb");
  add(zero > 0, "zero" + std::to_string(zero));
  add(!ruleAxis.empty(), "rule");
  add(isUneven(), "uneven");
  add(capacity, "capacity");
  add(dropout, "dropout");
  add(pp > 1 && schedule == "gpipe", "gpipe");
  return found;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static void addExperts(const Case &given, llvm::json::Object &config) {
  const Sizes &sizes = given.sizes;
  config["num_experts_per_tok"] = sizes.perToken;
  if (given.architecture == "mixtral") {
    config["num_local_experts"] = sizes.experts;
    config["intermediate_size"] = sizes.expertFfn;
    return;
  }
  config["n_routed_experts"] = sizes.experts;
  config["moe_intermediate_size"] = sizes.expertFfn;
  config["n_shared_experts"] = 1;
  config["n_group"] = sizes.experts / 2;
  config["topk_group"] = 1;
  config["first_k_dense_replace"] = sizes.dense;
  config["norm_topk_prob"] = true;
  config["routed_scaling_factor"] = 2.5;
}

static void addAttention(const Case &given, llvm::json::Object &config) {
  const Sizes &sizes = given.sizes;
  config["num_attention_heads"] = sizes.heads;
  config["num_key_value_heads"] = sizes.keyHeads;
  if (given.architecture != "deepseek_v3") {
    config["head_dim"] = sizes.headDim;
    return;
  }
  int64_t parts = given.zero == 3 ? given.dp * given.cp : 1;
  config["q_lora_rank"] = std::max<int64_t>(3, parts);
  config["kv_lora_rank"] = std::max<int64_t>(2, parts);
  config["qk_nope_head_dim"] = 2;
  config["qk_rope_head_dim"] = 2;
  config["v_head_dim"] = sizes.headDim - 1;
}

static llvm::json::Object gpt2Config(const Case &given) {
  const Sizes &sizes = given.sizes;
  double rate = given.dropout ? 0.25 : 0.0;
  return llvm::json::Object{{"model_type", "gpt2"},
                            {"n_embd", sizes.hidden},
                            {"n_head", sizes.heads},
                            {"n_layer", sizes.layers},
                            {"n_inner", sizes.ffn},
                            {"n_positions", sizes.sequence + 1},
                            {"vocab_size", sizes.vocabulary},
                            {"attn_pdrop", rate},
                            {"embd_pdrop", rate},
                            {"resid_pdrop", rate}};
}

std::string Case::config() const {
  llvm::json::Object config;
  if (architecture == "gpt2") {
    config = gpt2Config(*this);
  } else {
    config = llvm::json::Object{
        {"model_type", architecture},     {"hidden_size", sizes.hidden},
        {"intermediate_size", sizes.ffn}, {"num_hidden_layers", sizes.layers},
        {"vocab_size", sizes.vocabulary}, {"max_position_embeddings", 64},
        {"rms_norm_eps", 1e-6},           {"rope_theta", 10000.0},
        {"tie_word_embeddings", tied}};
    addAttention(*this, config);
    if (hasExperts())
      addExperts(*this, config);
  }
  return llvm::formatv("{0:2}\n", llvm::json::Value(std::move(config))).str();
}

std::vector<std::string> Case::arguments() const {
  std::vector<std::string> list;
  auto add = [&](const std::string &flag, const std::string &value) {
    list.push_back("--" + flag);
    list.push_back(value);
  };
  auto number = [](int64_t value) { return std::to_string(value); };
  add("mesh", "tp=" + number(tp) + ",cp=" + number(cp) + ",dp=" + number(dp) +
                  ",pp=" + number(pp));
  add("batch", number(sizes.batch));
  add("seq", number(sizes.sequence));
  add("micro-batches", number(microBatches));
  if (pp > 1)
    add("schedule", schedule);
  if (rankOrder != Case().rankOrder)
    add("rank-order", rankOrder);
  if (sp)
    list.push_back("--sp");
  if (cp > 1)
    add("cp-kind", contextKind);
  if (ep > 1)
    add("ep", number(ep));
  if (hasZero())
    add("zero", number(zero));
  // Unequal parts of a sequence need queues longer than all tokens.
  if (hasExperts())
    add("moe-buffer-factor", "100");
  if (capacity) {
    add("moe", "capacity");
    add("capacity-factor", "1.5");
  }
  return list;
}

std::string Case::reproduction() const {
  std::string text = "cat > config.json <<'END'\n" + config() + "END\n";
  if (!ruleAxis.empty())
    text += "# with a rule for parameter " + std::to_string(ruleParameter) +
            ": dimension " + std::to_string(ruleDim) + " over " + ruleAxis +
            "\n";
  text += "parc run config.json --exact";
  for (const std::string &argument : arguments())
    text += " " + argument;
  return text + "\n";
}
