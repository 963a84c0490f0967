//===- ErrorTexts.cpp - Errors at length ----------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The table of long forms. One entry a name: the rule, an input that breaks
/// it, and the input put right.
///
//===----------------------------------------------------------------------===//

#include "parc/Driver/ErrorTexts.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir::parc::driver;

static constexpr ErrorText kErrorTexts[] = {
    {"axes",
     "A rule of a plan splits a dimension over axes of the mesh; each is "
     "written once.",
     "q = [\"tp\", \"tp\"]", "q = [\"tp\", \"\"]"},
    {"batch",
     "Every replica (dp) runs every micro-batch with at least one sequence, so "
     "the global batch is at least dp times the micro-batches. It need not "
     "divide: parts may differ by one.",
     "parc MODEL --mesh dp=4 --batch 6 --micro-batches 2",
     "parc MODEL --mesh dp=4 --batch 8 --micro-batches 2"},
    {"beta1", "AdamW's decay rates lie in [0, 1).", "parc MODEL --beta1 1.5",
     "parc MODEL --beta1 0.9"},
    {"beta2", "AdamW's decay rates lie in [0, 1).", "parc MODEL --beta2 1.5",
     "parc MODEL --beta2 0.95"},
    {"bucket",
     "ZeRO sends gradients in buckets of at least one element; larger ones "
     "send fewer, longer messages.",
     "parc MODEL --mesh dp=4 --bucket 0",
     "parc MODEL --mesh dp=4 --bucket 25000000"},
    {"capacity-factor",
     "An expert's queue holds the balanced load times this factor, and tokens "
     "beyond it are dropped. It has a meaning only where tokens may be "
     "dropped, and is above zero.",
     "parc MODEL --capacity-factor 1.25",
     "parc MODEL --moe capacity --capacity-factor 1.25"},
    {"clip",
     "Gradients are scaled so that their norm is at most this; 0 leaves them "
     "alone. Below zero has no meaning.",
     "parc MODEL --clip -1", "parc MODEL --clip 1.0"},
    {"cp",
     "The axis cp splits the sequence: the model's step has to have one, and a "
     "unit of it for every rank.",
     "parc MODEL --mesh cp=32 --seq 16", "parc MODEL --mesh cp=4 --seq 16"},
    {"cp-kind",
     "How attention meets keys that lie on other ranks: 'ring' passes them "
     "round, 'all-gather' collects them, 'ulysses' exchanges the sequence for "
     "heads, 'auto' chooses by bytes among those that are legal.",
     "parc MODEL --mesh cp=2 --cp-kind rign",
     "parc MODEL --mesh cp=2 --cp-kind ring"},
    {"dp",
     "The axis dp holds replicas; ZeRO needs at least two to share state "
     "among.",
     "parc MODEL --mesh tp=2 --zero 2", "parc MODEL --mesh tp=2,dp=2 --zero 2"},
    {"dtype", "Parameters and activations are bf16, f32 or f64.",
     "parc MODEL --dtype f8", "parc MODEL --dtype bf16"},
    {"ep", "Ranks that share out the experts: a whole number, at least 1.",
     "parc MODEL --ep 0", "parc MODEL --mesh dp=4 --ep 2"},
    {"ep-experts",
     "Every rank of an expert group holds equally many experts, so ep divides "
     "their number: an uneven share would leave ranks waiting in every layer.",
     "parc MODEL --mesh dp=3 --ep 3      # 8 experts",
     "parc MODEL --mesh dp=4 --ep 4"},
    {"ep-mesh",
     "Experts are shared out among ranks that hold the same parameters "
     "otherwise: those of cp first, then of dp. So ep divides cp, or is cp "
     "times a divisor of dp.",
     "parc MODEL --mesh dp=4 --ep 3", "parc MODEL --mesh dp=4 --ep 2"},
    {"ep-on-dense",
     "Expert parallelism splits experts, and this model has none.",
     "parc MODEL --mesh dp=4 --ep 2     # no experts",
     "parc MODEL --mesh dp=4"},
    {"ep-without-sp",
     "Without sp all ranks of tp hold the same tokens, and each would send all "
     "of them to the experts. With sp each sends its own part of the sequence.",
     "parc MODEL --mesh tp=2,dp=2 --ep 2",
     "parc MODEL --mesh tp=2,dp=2 --ep 2 --sp"},
    {"ep-zero-group",
     "A ZeRO group is cut out of dp x cp first. Experts lie on ranks next to "
     "each other; where neither number is a multiple of the other, they lie on "
     "more ranks than ep says.",
     "parc MODEL --mesh dp=12 --zero-group 4 --ep 6",
     "parc MODEL --mesh dp=12 --zero-group 6 --ep 6"},
    {"eps", "AdamW divides by a root plus this: above zero.",
     "parc MODEL --eps 0", "parc MODEL --eps 1e-8"},
    {"file",
     "A file could not be read: it is not there, is a folder, is too large or "
     "holds something else. MODEL is a .mlir file, a config.json or its "
     "folder, or '-' for standard input.",
     "parc model/", "parc model/config.json"},
    {"gate",
     "A text is looked at before MLIR's parser reads it: nesting, sizes and "
     "lengths are bounded, so that no text can exhaust memory or the stack.",
     "a type nested a thousand levels deep",
     "print the model again from the tool that made it"},
    {"idle",
     "A pipeline of p stages with m micro-batches idles (p-1)/(m+p-1) of the "
     "time; with fewer micro-batches than stages some stage never has work "
     "while others do.",
     "parc MODEL --mesh pp=8 --micro-batches 2",
     "parc MODEL --mesh pp=8 --micro-batches 16 --batch 16"},
    {"inputs",
     "A file of inputs is safetensors with 'input_ids' [batch, sequence] of "
     "whole numbers below the vocabulary, and 'labels' alike, where -100 has "
     "no label.",
     "parc run MODEL --inputs floats.safetensors", "store the tokens as i64"},
    {"internal", "parc is at fault, not what was typed.", "-",
     "send the command and the model to parc's developers; --dump-phases shows "
     "how far it came"},
    {"lr", "The learning rate is above zero.", "parc MODEL --lr -1",
     "parc MODEL --lr 3e-4"},
    {"mesh",
     "A mesh names each axis once with a size of at least 1, or gives sizes "
     "for tp, pp, dp in this order. Axes: tp (tensor), pp (stages), dp "
     "(replicas), cp (sequence).",
     "parc MODEL --mesh tp=2,tp=4", "parc MODEL --mesh tp=2,dp=4"},
    {"mesh-size",
     "The product of a mesh's sizes is the number of ranks, one process a "
     "device. It has to be what there is: layers bound pp, sequences of the "
     "batch bound dp, heads and widths bound tp, and the machines bound the "
     "product.",
     "parc MODEL --mesh 8x16x4           # 512 ranks",
     "parc MODEL --mesh 8x16x2           # 256 ranks"},
    {"micro-batches",
     "How many parts a replica cuts its share of the batch into: a whole "
     "number, at least 1. Each has a sequence or more.",
     "parc MODEL --micro-batches 0", "parc MODEL --batch 8 --micro-batches 4"},
    {"model",
     "The model is not legal MLIR, has an op that parc cannot split or "
     "differentiate, or cannot be laid out as asked. The message names the "
     "value, the dimension and the axis.",
     "parc.constraint over an axis that the mesh lacks",
     "give the mesh the axis, or remove the constraint"},
    {"moe",
     "How tokens reach experts: 'dropless' keeps all of them in bounded queues "
     "and stops where one overflows, 'capacity' drops what exceeds an expert's "
     "share.",
     "parc MODEL --moe drop", "parc MODEL --moe capacity"},
    {"moe-buffer-factor",
     "An expert's queue holds the balanced load times this factor; below 1 it "
     "would overflow in every step.",
     "parc MODEL --moe-buffer-factor 0.5", "parc MODEL --moe-buffer-factor 2"},
    {"moe-scope",
     "What an expert's capacity and the loss that balances experts look at "
     "together: each sequence, the sequences of one micro-batch of one "
     "replica, "
     "or the whole batch. The scope belongs to the model, so that every mesh "
     "drops the same tokens; where a layout cannot keep it whole it is "
     "refused.",
     "parc MODEL --moe capacity --moe-scope global --micro-batches 2",
     "parc MODEL --moe capacity --moe-scope micro-batch --micro-batches 2"},
    {"name",
     "'parc explain MODEL NAME' takes a name that the model uses where "
     "something is sent: an op's, with or without the layers it is in, or a "
     "parameter's.",
     "parc explain MODEL atn.o", "parc explain MODEL attn.o"},
    {"not-equal",
     "The ranks together did not compute what the unpartitioned program "
     "computes. With --exact, where equal means equal, this is a fault of "
     "parc; without, it may be rounding.",
     "parc run MODEL --mesh 2x2x2", "parc run MODEL --mesh 2x2x2 --exact"},
    {"output",
     "parc replaces a folder only if it made it, and a file only if it wrote "
     "it; --force replaces anything but links and devices.",
     "parc MODEL -o src", "parc MODEL -o out"},
    {"phase",
     "--stop-after prints the program at the end of a phase: model, annotated, "
     "differentiated, sharded, local, staged, scheduled, runtime.",
     "parc MODEL --stop-after shard", "parc MODEL --stop-after sharded"},
    {"plan", "A plan is TOML with 'schema = 1'; each key has one type.",
     "mesh = 4", "mesh = \"tp=4\""},
    {"rank", "A rank is a number from 0 to one less than the mesh has ranks.",
     "parc show groups MODEL --mesh 2x2x2 --rank 8",
     "parc show groups MODEL --mesh 2x2x2 --rank 7"},
    {"rank-order",
     "The order of ranks names each axis of the mesh once, the fastest first: "
     "neighbours along it have neighbouring numbers, and so the fastest links.",
     "parc MODEL --mesh tp=2,dp=2 --rank-order tp",
     "parc MODEL --mesh tp=2,dp=2 --rank-order tp-dp"},
    {"rule",
     "A rule of a plan gives the axes of each dimension of the parameters that "
     "its pattern names. The pattern must match one, the axes must be the "
     "mesh's, and two rules, or a rule and the model, must not disagree.",
     "[rules]\nq = [\"pp\", \"\"]", "[rules]\nq = [\"tp\", \"\"]"},
    {"rules",
     "What a plan's table of rules holds: a pattern and a list, one entry a "
     "dimension, of an axis, a list of axes, or \"\".",
     "[rules]\nq = 3", "[rules]\nq = [\"tp\", \"\"]"},
    {"run",
     "The program failed while it ran: a value is not finite, an expert's "
     "queue overflowed, or ranks waited for each other. The message names "
     "rank, layer and op.",
     "parc run MODEL --moe-buffer-factor 1",
     "parc run MODEL --moe-buffer-factor 4"},
    {"save", "What --save names could not be written.",
     "parc run MODEL --save /nowhere/x.safetensors",
     "parc run MODEL --save x.safetensors"},
    {"schedule",
     "'gpipe' runs all forwards, then all backwards; '1f1b' alternates and "
     "holds fewer activations. The last stage's order must leave no stage "
     "waiting for itself.",
     "parc MODEL --schedule 1f1", "parc MODEL --schedule 1f1b"},
    {"seed",
     "A whole number, at least 0; the same seed gives the same values on every "
     "mesh.",
     "parc run MODEL --seed x", "parc run MODEL --seed 7"},
    {"seq",
     "Tokens a sequence: a whole number, at least 1, and at most what the "
     "model's positions reach. A program that is written for one length keeps "
     "it.",
     "parc MODEL --seq 0", "parc MODEL --seq 4096"},
    {"sp-without-tp",
     "Sequence parallelism splits, along the sequence, what lies between the "
     "regions that tp splits. Without tp there are none; to split the sequence "
     "alone, use cp.",
     "parc MODEL --mesh dp=4 --sp", "parc MODEL --mesh tp=2,dp=2 --sp"},
    {"stage", "A stage is a number from 0 to pp-1.",
     "parc show comms MODEL --mesh pp=2 --stage 2",
     "parc show comms MODEL --mesh pp=2 --stage 1"},
    {"stages",
     "A stage has at least one layer, so pp is at most the number of layers. "
     "Layers need not divide: stages may differ by one.",
     "parc MODEL --mesh pp=8              # 3 layers",
     "parc MODEL --mesh pp=3"},
    {"steps", "How many steps to run: a whole number, at least 1.",
     "parc run MODEL --steps 0", "parc run MODEL --steps 3"},
    {"tp-across-nodes",
     "The ranks of a tp group exchange activations in every layer. Where a "
     "group spans more than one node that goes over the network, several times "
     "slower than the links inside.",
     "parc MODEL --mesh tp=16", "parc MODEL --mesh tp=8,pp=2"},
    {"uneven",
     "Heads that do not divide by tp leave some ranks with one more than "
     "others, and the rest wait for them. Nothing is padded, and the result is "
     "the same.",
     "parc MODEL --mesh tp=3              # 4 heads", "parc MODEL --mesh tp=2"},
    {"uneven-batch",
     "A batch that is no multiple of dp times the micro-batches has "
     "micro-batches that differ by a sequence. The result is the same; the "
     "smaller ones wait.",
     "parc MODEL --mesh dp=3 --batch 4", "parc MODEL --mesh dp=3 --batch 6"},
    {"unknown-flag", "No verb has this flag; 'parc --help' lists them.",
     "parc MODEL --mehs 2x2x2", "parc MODEL --mesh 2x2x2"},
    {"unknown-key",
     "A plan has no such key; 'parc show config MODEL' lists them.",
     "mehs = \"2x2x2\"", "mesh = \"2x2x2\""},
    {"unknown-verb", "The first word is a verb, or a model to compile.",
     "parc complie MODEL", "parc compile MODEL"},
    {"usage", "The command line is not complete, or has a word too many.",
     "parc show MODEL", "parc show comms MODEL"},
    {"weight-decay", "AdamW's decay of weights is at least 0.",
     "parc MODEL --weight-decay -1", "parc MODEL --weight-decay 0.1"},
    {"weights",
     "A file of weights is safetensors, or the index of several; each tensor "
     "of the model is there, with its shape, under the name that the config's "
     "architecture uses.",
     "parc run MODEL --weights other.safetensors",
     "parc run MODEL --weights model.safetensors"},
    {"zero",
     "How much of the training state replicas share out: 0 nothing, 1 "
     "optimizer state, 2 gradients too, 3 parameters too. It needs replicas.",
     "parc MODEL --mesh tp=2 --zero 4", "parc MODEL --mesh tp=2,dp=2 --zero 3"},
    {"zero-group",
     "State is shared out inside groups of this many replicas and kept whole "
     "across them; it divides dp.",
     "parc MODEL --mesh dp=4 --zero 1 --zero-group 3",
     "parc MODEL --mesh dp=4 --zero 1 --zero-group 2"},
    {"zero-traffic",
     "ZeRO 3 gathers every parameter in every forward and backward of every "
     "micro-batch; with many of these it sends far more than ZeRO 1, which "
     "gathers once a step.",
     "parc MODEL --mesh dp=4 --zero 3 --micro-batches 64 --batch 256",
     "parc MODEL --mesh dp=4 --zero 1 --micro-batches 64 --batch 256"},
};

llvm::ArrayRef<ErrorText> mlir::parc::driver::errorTexts() {
  return kErrorTexts;
}

const ErrorText *mlir::parc::driver::findErrorText(llvm::StringRef name) {
  const auto *found = llvm::find_if(
      kErrorTexts, [&](const ErrorText &text) { return text.name == name; });
  return found == std::end(kErrorTexts) ? nullptr : found;
}
