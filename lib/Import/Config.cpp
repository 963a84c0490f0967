//===- Config.cpp - What config.json says ---------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads every field that the architecture's description names, and checks
/// the sizes against each other.
///
//===----------------------------------------------------------------------===//

#include "parc/Import/Config.h"
#include "Fields.h"
#include "Nearest.h"
#include "Parts.h"
#include "Rope.h"
#include "parc/Import/Parameters.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::parc;

static constexpr int64_t kMostLayers = 100000;

/// Fields of every model that do not change a training step: token numbers,
/// generation, what a call returns, provenance.
static constexpr const char *kHarmless[] = {"_attn_implementation",
                                            "_attn_implementation_autoset",
                                            "_name_or_path",
                                            "auto_map",
                                            "bad_words_ids",
                                            "begin_suppress_tokens",
                                            "bos_token_id",
                                            "cache_implementation",
                                            "chunk_size_feed_forward",
                                            "cross_attention_hidden_size",
                                            "decoder_start_token_id",
                                            "diversity_penalty",
                                            "do_sample",
                                            "early_stopping",
                                            "encoder_no_repeat_ngram_size",
                                            "eos_token_id",
                                            "exponential_decay_length_penalty",
                                            "finetuning_task",
                                            "forced_bos_token_id",
                                            "forced_eos_token_id",
                                            "gradient_checkpointing",
                                            "id2label",
                                            "is_decoder",
                                            "label2id",
                                            "length_penalty",
                                            "max_length",
                                            "min_length",
                                            "no_repeat_ngram_size",
                                            "num_beam_groups",
                                            "num_beams",
                                            "num_labels",
                                            "num_return_sequences",
                                            "output_attentions",
                                            "output_hidden_states",
                                            "output_scores",
                                            "pad_token_id",
                                            "prefix",
                                            "problem_type",
                                            "remove_invalid_values",
                                            "repetition_penalty",
                                            "return_dict",
                                            "return_dict_in_generate",
                                            "sep_token_id",
                                            "suppress_tokens",
                                            "task_specific_params",
                                            "temperature",
                                            "tf_legacy_loss",
                                            "tie_encoder_decoder",
                                            "tokenizer_class",
                                            "top_k",
                                            "top_p",
                                            "torchscript",
                                            "transformers.js_config",
                                            "transformers_version",
                                            "typical_p",
                                            "unsloth_fixed",
                                            "unsloth_version",
                                            "use_bfloat16",
                                            "use_cache"};

/// Fields of every model that are supported with these values only.
static const ValueRule kRules[] = {{"is_encoder_decoder", "[false]"},
                                   {"quantization_config", "[]"},
                                   {"compression_config", "[]"},
                                   {"pruned_heads", "[{}]"}};

StringRef mlir::parc::stringifyElementKind(ElementKind kind) {
  switch (kind) {
  case ElementKind::F32:
    return "f32";
  case ElementKind::F64:
    return "f64";
  case ElementKind::BF16:
    return "bf16";
  }
  llvm_unreachable("all kinds are above");
}

std::optional<ElementKind> mlir::parc::parseElementKind(StringRef name) {
  return llvm::StringSwitch<std::optional<ElementKind>>(name)
      .Case("f32", ElementKind::F32)
      .Case("f64", ElementKind::F64)
      .Case("bf16", ElementKind::BF16)
      .Default(std::nullopt);
}

namespace {
/// Reads one config of a known architecture.
class ConfigReader {
public:
  ConfigReader(const Architecture &architecture, Fields &fields)
      : architecture(architecture), keys(architecture.keys),
        defaults(architecture.defaults), fields(fields) {
    config.architecture = &architecture;
  }

  ModelConfig read(std::optional<ElementKind> element) {
    // All known names come first: a missing field looks for a misspelling
    // among those that are not known.
    markKnown();
    readSizes();
    readOptions();
    readWindow();
    config.element = readElement(element);
    if (architecture.positions == PositionKind::Rotary)
      config.rope = readRope(fields, config.maxPositions);
    if (architecture.attention == AttentionKind::Latent)
      readLatent(fields, config);
    if (architecture.router != RouterKind::None)
      readExperts(fields, config);
    readRuns(fields, config);
    checkRules();
    if (!fields.hasFaults())
      checkSizes();
    fields.checkSpelling();
    return config;
  }

private:
  void markKnown() {
    for (StringRef key :
         {"model_type", "architectures", "layer_types", "torch_dtype", "dtype",
          "initializer_range", "tie_word_embeddings"})
      fields.markKnown(key);
    for (StringRef key : kHarmless)
      fields.markHarmless(key);
    for (StringRef key : architecture.harmless)
      fields.markHarmless(key);
    for (const ValueRule &rule : architecture.rules)
      fields.markKnown(rule.key);
    for (StringRef key :
         {keys.hidden, keys.layers, keys.heads, keys.kvHeads, keys.headDim,
          keys.ffn, keys.vocab, keys.maxPositions, keys.epsilon,
          keys.activation, keys.window, keys.attentionBias, keys.mlpBias,
          keys.scaleScores, keys.embeddingDropout, keys.attentionDropout,
          keys.residualDropout})
      if (!key.empty())
        fields.markKnown(key);
    markPartsKnown(architecture, fields);
    if (architecture.positions == PositionKind::Rotary)
      for (StringRef key : {"rope_theta", "rope_scaling", "rope_parameters"})
        fields.markKnown(key);
  }

  void readSizes() {
    config.vocab = fields.size(keys.vocab);
    config.hidden = fields.size(keys.hidden);
    config.layers = fields.size(keys.layers, std::nullopt, kMostLayers);
    config.heads = fields.size(keys.heads);
    config.kvHeads = keys.kvHeads.empty()
                         ? config.heads
                         : fields.size(keys.kvHeads, config.heads);
    if (!keys.headDim.empty() && fields.get(keys.headDim))
      config.headDim = fields.size(keys.headDim);
    std::optional<int64_t> ffn;
    if (defaults.ffnFactor)
      ffn = defaults.ffnFactor * config.hidden;
    config.ffn = fields.size(keys.ffn, ffn);
    config.maxPositions = fields.size(keys.maxPositions);
  }

  void readOptions() {
    config.epsilon =
        fields.number(keys.epsilon, defaults.epsilon, 0.0, 1.0, true);
    config.initializerRange =
        fields.number("initializer_range", defaults.initializerRange, 0.0, 1e6);
    config.tied = fields.boolean("tie_word_embeddings", defaults.tied);
    config.activation = readActivation();
    bool attentionBias = readFlag(keys.attentionBias, false);
    config.qkvBias = architecture.qkvBias || attentionBias;
    config.outputBias = architecture.outputBias || attentionBias;
    config.mlpBias = architecture.mlpBias || readFlag(keys.mlpBias, false);
    config.scaleScores = readFlag(keys.scaleScores, true);
    config.embeddingDropout = readDropout(keys.embeddingDropout);
    config.attentionDropout = readDropout(keys.attentionDropout);
    config.residualDropout = readDropout(keys.residualDropout);
  }

  bool readFlag(StringRef key, bool missing) {
    return key.empty() ? missing : fields.boolean(key, missing);
  }

  double readDropout(StringRef key) {
    if (key.empty())
      return 0.0;
    double rate = fields.number(key, defaults.dropout, 0.0, 1.0);
    if (rate == 1.0)
      fields.fault(key, "field '" + key + "': expected less than 1, got 1");
    return rate;
  }

  ActivationKind readActivation() {
    std::string name = fields.string(keys.activation, defaults.activation);
    fields.requireOneOf(keys.activation,
                        R"(["silu", "swish", "gelu", "gelu_new",
                            "gelu_pytorch_tanh"])");
    return llvm::StringSwitch<ActivationKind>(name)
        .Cases({"gelu_new", "gelu_pytorch_tanh"}, ActivationKind::GeluTanh)
        .Case("gelu", ActivationKind::GeluExact)
        .Default(ActivationKind::Silu);
  }

  void readWindow() {
    if (!keys.window.empty()) {
      // Null says that there is none; absence that it is the usual one.
      bool present = fields.getSource().find(keys.window);
      int64_t window = fields.size(keys.window, present ? 0 : defaults.window);
      if (window)
        config.window = window;
    }
    readLayerTypes();
  }

  /// One kind of layer, which is what the window says.
  void readLayerTypes() {
    const llvm::json::Value *types = fields.get("layer_types");
    if (!types)
      return;
    StringRef expected = config.window ? "sliding_attention" : "full_attention";
    const llvm::json::Array *array = types->getAsArray();
    if (!array)
      return fields.fault("layer_types",
                          "field 'layer_types': expected an array, got " +
                              fields.getSource().quote("layer_types"));
    if (static_cast<int64_t>(array->size()) != config.layers)
      return fields.fault("layer_types", "field 'layer_types': expected " +
                                             Twine(config.layers) +
                                             " entries, one a layer, got " +
                                             Twine(array->size()));
    for (auto [layer, type] : llvm::enumerate(*array))
      if (type.getAsString() != expected)
        return fields.fault("layer_types",
                            "field 'layer_types': expected \"" + expected +
                                "\" in every layer (mixed layers are not "
                                "supported), got " +
                                quoteJson(type) + " in layer " + Twine(layer));
  }

  ElementKind readElement(std::optional<ElementKind> element) {
    std::string older = fields.string("torch_dtype", "");
    std::string newer = fields.string("dtype", "");
    if (!older.empty() && !newer.empty() && older != newer)
      fields.fault("dtype", "fields 'dtype' and 'torch_dtype' differ; remove "
                            "one");
    if (element)
      return *element;
    StringRef key = newer.empty() ? "torch_dtype" : "dtype";
    StringRef name = newer.empty() ? older : newer;
    name.consume_front("torch.");
    if (name.empty() || name == "auto")
      return ElementKind::F32;
    auto kind = llvm::StringSwitch<std::optional<ElementKind>>(name)
                    .Case("float32", ElementKind::F32)
                    .Case("float64", ElementKind::F64)
                    .Case("bfloat16", ElementKind::BF16)
                    .Default(std::nullopt);
    if (!kind)
      fields.fault(key, "field '" + key +
                            "': expected \"float32\", \"bfloat16\" or "
                            "\"float64\", got \"" +
                            name + "\"; choose one with --dtype f32|bf16|f64");
    return kind.value_or(ElementKind::F32);
  }

  void checkRules() {
    for (const ValueRule &rule : kRules)
      checkRule(rule);
    for (const ValueRule &rule : architecture.rules)
      checkRule(rule);
    const llvm::json::Value *classes = fields.get("architectures");
    llvm::json::Array wanted{architecture.className};
    if (classes && *classes != llvm::json::Value(std::move(wanted))) {
      std::string got;
      llvm::raw_string_ostream(got) << *classes;
      fields.fault("architectures", "field 'architectures': expected [\"" +
                                        architecture.className + "\"], got " +
                                        got.substr(0, 60));
    }
  }

  void checkRule(const ValueRule &rule) {
    if (rule.allowed != "[]")
      return fields.requireOneOf(rule.key, rule.allowed);
    if (fields.get(rule.key))
      fields.fault(rule.key, "field '" + rule.key + "' is not supported",
                   /*atKey=*/true);
  }

  /// Sizes that must go together.
  void checkSizes() {
    if (config.heads % config.kvHeads != 0)
      fields.fault(keys.heads,
                   "field '" + keys.heads + "': expected a multiple of '" +
                       keys.kvHeads + "', " + Twine(config.kvHeads) + ", got " +
                       Twine(config.heads));
    if (!config.headDim)
      deriveHeadDim();
    bool latent = architecture.attention == AttentionKind::Latent;
    if (!latent)
      config.valueDim = config.rotaryDim = config.headDim;
    if (architecture.positions == PositionKind::Rotary &&
        config.rotaryDim % 2 != 0 && !fields.hasFault(keys.hidden))
      fields.fault(latent ? architecture.latent.rotaryDim
                   : !keys.headDim.empty() && fields.get(keys.headDim)
                       ? keys.headDim
                       : keys.hidden,
                   "expected an even number of elements a head, because "
                   "rotary positions turn pairs, got " +
                       Twine(config.rotaryDim));
    int64_t widest =
        std::max(config.headDim, config.latent.plainDim + config.valueDim);
    if (config.ffn > kMaxSize || config.heads > kMaxSize / widest)
      fields.fault(config.ffn > kMaxSize ? keys.hidden : keys.heads,
                   "expected a layer of at most " + Twine(kMaxSize) +
                       " elements a position");
    else if (!countParameters(config))
      fields.fault(keys.layers, "expected fewer than 2^62 parameters");
  }

  void deriveHeadDim() {
    config.headDim = defaults.headDim;
    if (config.headDim)
      return;
    config.headDim = std::max<int64_t>(1, config.hidden / config.heads);
    if (config.hidden % config.heads != 0)
      fields.fault(
          keys.hidden,
          "field '" + keys.hidden + "': expected a multiple of '" + keys.heads +
              "', " + Twine(config.heads) + ", got " + Twine(config.hidden) +
              (keys.headDim.empty() ? Twine("")
                                    : "; or give '" + keys.headDim + "'"));
  }

  const Architecture &architecture;
  const ConfigKeys &keys;
  const ConfigDefaults &defaults;
  Fields &fields;
  ModelConfig config;
};
} // namespace

/// The architecture that `model_type` names; null after a fault.
static const Architecture *readArchitecture(Fields &fields) {
  std::string type = fields.string("model_type", "");
  if (fields.hasFaults())
    return nullptr;
  if (type.empty()) {
    fields.require("model_type");
    if (!fields.hasFaults())
      fields.fault("model_type",
                   "field 'model_type': expected a name, got \"\"");
    return nullptr;
  }
  if (const Architecture *architecture = findArchitecture(type))
    return architecture;
  SmallVector<StringRef> supported;
  for (const Architecture *architecture : getArchitectures())
    supported.push_back(architecture->modelType);
  StringRef nearest = findNearest(type, supported);
  fields.fault(
      "model_type",
      "not supported yet: model_type \"" + type + "\"; expected " +
          llvm::join(supported, ", ") +
          (nearest.empty() ? Twine("") : " (nearest: " + nearest + ")"));
  return nullptr;
}

/// One warning for all fields that were not understood.
static void warnIgnored(const JsonSource &source, ModelConfig &config,
                        ArrayRef<StringRef> unknown) {
  if (unknown.empty())
    return;
  InFlightDiagnostic warning = emitWarning(source.keyLocation(unknown.front()))
                               << "not understood, ignored: ";
  llvm::interleave(
      unknown, [&](StringRef name) { warning << "'" << name << "'"; },
      [&] { warning << ", "; });
  for (StringRef name : unknown)
    config.ignored.push_back(name.str());
}

FailureOr<ModelConfig>
mlir::parc::readModelConfig(MLIRContext *context, StringRef text,
                            StringRef file,
                            std::optional<ElementKind> element) {
  FailureOr<JsonSource> source = JsonSource::parse(context, text, file);
  if (failed(source))
    return failure();
  Fields fields(*source);
  const Architecture *architecture = readArchitecture(fields);
  if (!architecture)
    return fields.report();
  ModelConfig config = ConfigReader(*architecture, fields).read(element);
  if (failed(fields.report()))
    return failure();
  config.file = file.str();
  warnIgnored(*source, config, fields.getUnknown());
  return config;
}
