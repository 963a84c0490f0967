//===- Models.cpp - The ops that are written down one by one --------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Models of the nn ops and of the structured and shape ops of upstream.
///
//===----------------------------------------------------------------------===//

#include "Model.h"

using namespace mlir::parc::equiv;

/// Defines `%e`, an empty tensor, and `%f`, a zero one, of the type of `y`.
static std::string onto(const std::string &body) {
  return "%e = tensor.empty() : $y\n%null = arith.constant 0.0 : f32\n"
         "%f = linalg.fill ins(%null : f32) outs(%e : $y) -> $y\n" +
         body;
}

static std::vector<Model> nnModels() {
  return {
      {"linear", "x:BSK w:NK", "", "y:BSN",
       "%y = nn.linear %x, %w : $x, $w -> $y"},
      {"linear_transposed", "x:BK w:KN", "", "y:BN",
       "%y = nn.linear %x, %w transposed : $x, $w -> $y"},
      {"bias_add", "x:BSN b:N", "", "y:BSN",
       "%y = nn.bias_add %x, %b : $x, $b"},
      {"linear_bias", "x:BSK w:NK b:N", "", "y:BSN",
       "%h = nn.linear %x, %w : $x, $w -> $y\n"
       "%y = nn.bias_add %h, %b : $y, $b",
       "", true},
      {"embedding", "t:VN", "ids:BS", "y:BSN",
       "%y = nn.embedding %ids, %t : $ids, $t -> $y"},
      {"rms_norm", "x:BSK w:K", "", "y:BSK",
       "%y = nn.rms_norm %x, %w epsilon 1.0e-5 : $x, $w"},
      {"layer_norm", "x:BSK w:K b:K", "", "y:BSK",
       "%y = nn.layer_norm %x, %w, %b epsilon 1.0e-5 : $x, $w"},
      {"silu", "x:BSK", "", "y:BSK", "%y = nn.silu %x : $x"},
      {"gelu", "x:BSK", "", "y:BSK", "%y = nn.gelu %x : $x"},
      {"gelu_exact", "x:BSK", "", "y:BSK", "%y = nn.gelu %x exact : $x"},
      {"rope", "x:BSHD", "pos:BS", "y:BSHD",
       "%c, %s = nn.rope_table %pos frequencies [1.0, 0.25] scale 1.5 : $pos "
       "-> $c\n%y = nn.rope %x, %c, %s : $x, $c",
       "c:BSF"},
      {"rope_interleaved", "x:BSHD", "pos:BS", "y:BSHD",
       "%c, %s = nn.rope_table %pos frequencies [1.0, 0.25] : $pos "
       "-> $c\n%y = nn.rope %x, %c, %s interleaved inverse : $x, $c",
       "c:BSF"},
      {"rope_table", "", "pos:BS", "c:BSF s:BSF",
       "%c, %s = nn.rope_table %pos frequencies [1.0, 0.25] : $pos -> $c"},
      {"attention", "q:BSHD k:BTGD v:BTGE", "pos:BS posk:BT", "y:BSHE",
       "%y = nn.attention %q, %k, %v positions(%pos, %posk) causal scale 0.5 : "
       "$q, $k, $v, $pos, $posk -> $y"},
      {"attention_window", "q:BSHD k:BTHD v:BTHD", "pos:BS", "y:BSHD",
       "%y = nn.attention %q, %k, %v positions(%pos, %pos) causal window 3 "
       "scale 0.5 : $q, $k, $v, $pos, $pos -> $y"},
      {"attention_dropout", "q:BSHD k:BTGD v:BTGE", "pos:BS posk:BT", "y:BSHE",
       "%seed = arith.constant dense<42> : tensor<i64>\n"
       "%y = nn.attention %q, %k, %v positions(%pos, %posk) scale 0.5 dropout "
       "0.3 site 1 seed %seed : $q, $k, $v, $pos, $posk, tensor<i64> -> $y"},
      {"fold", "", "ids:BS", "y:BS",
       "%f = nn.fold %ids dim 1 parts 2 : $ids\n"
       "%y = arith.sitofp %f : $ids to $y"},
      {"dropout", "x:BSK", "", "y:BSK",
       "%seed = arith.constant dense<42> : tensor<i64>\n"
       "%y = nn.dropout %x seed %seed rate 0.3 site 2 : $x, tensor<i64>"},
      {"add_n", "", "ids:BS ids2:BS", "y:BS",
       "%a = arith.sitofp %ids : $ids to $y\n"
       "%b = arith.sitofp %ids2 : $ids to $y\n"
       "%y = nn.add_n %a, %b, %a : $y, $y, $y -> $y"},
      {"softmax_cross_entropy", "x:BSV", "labels:BS", "l:",
       "%l, %count, %lse = nn.softmax_cross_entropy %x, %labels : $x, $labels "
       "-> $l, $l, $lse",
       "lse:BS"},
      {"embedding_head", "x:BSK w:VK", "labels:BS", "l:",
       "%y = nn.linear %x, %w : $x, $w -> $y\n"
       "%l, %count, %lse = nn.softmax_cross_entropy %y, %labels : $y, $labels "
       "-> $l, $l, $lse",
       "y:BSV lse:BS", true},
  };
}

/// Routing gives integers, and in which slot a token lies is for each layout to
/// say: what is compared is made of the ids, or read back from the queues.
static std::vector<Model> expertModels() {
  return {
      {"softmax", "x:BSK", "", "y:BSK", "%y = nn.softmax %x : $x"},
      {"select_experts", "", "scores:BSX bias:X", "y:BSC",
       "%s = arith.sitofp %scores : $scores to $s\n"
       "%b = arith.sitofp %bias : $bias to $b\n"
       "%i = nn.select_experts %s bias %b top_k 2 groups 3 keep 2 score "
       "\"top2_sum\" : $s, $b -> tensor<@B@x@S@x2xi64>\n"
       "%y = arith.sitofp %i : tensor<@B@x@S@x2xi64> to $y",
       "s:BSX b:X"},
      {"select_experts_plain", "", "scores:BSX", "y:BSC",
       "%s = arith.sitofp %scores : $scores to $s\n"
       "%i = nn.select_experts %s top_k 2 : $s -> tensor<@B@x@S@x2xi64>\n"
       "%y = arith.sitofp %i : tensor<@B@x@S@x2xi64> to $y",
       "s:BSX"},
      {"limit_experts", "", "ids:BSC", "y:BSC",
       "%i = nn.limit_experts %ids capacity 1 scope 1 : $ids\n"
       "%y = arith.sitofp %i : $ids to $y"},
      {"limit_experts_pairs", "", "ids:BSC", "y:BSC",
       "%i = nn.limit_experts %ids capacity 3 scope 2 : $ids\n"
       "%y = arith.sitofp %i : $ids to $y"},
      {"experts", "x:BSK w:XNK p:BSC", "ids:BSC", "y:BSN",
       "%q, %slot = nn.dispatch %x, %ids : $x, $ids -> $q, $ids\n" +
           std::string(
               "%e = tensor.empty() : $h\n%null = arith.constant 0.0 : f32\n"
               "%g = linalg.fill ins(%null : f32) outs(%e : $h) -> $h\n"
               "%h = linalg.contract indexing_maps = ["
               "affine_map<(e, c, n, k) -> (e, c, k)>, "
               "affine_map<(e, c, n, k) -> (e, n, k)>, "
               "affine_map<(e, c, n, k) -> (e, c, n)>] "
               "ins(%q, %w : $q, $w) outs(%g : $h) -> $h") +
           "\n%y = nn.combine %h, %ids, %slot weights %p : "
           "$h, $ids, $ids, $p -> $y",
       "q:XQK h:XQN"},
      {"experts_by_slot", "x:BSK z:BSK p:BSC", "ids:BSC", "y:BSK",
       "%q, %slot = nn.dispatch %x, %ids : $x, $ids -> $q, $ids\n"
       "%r = nn.fill_queues %z, %ids, %slot weights %p : "
       "$z, $ids, $ids, $p -> $q\n"
       "%t = arith.mulf %q, %r : $q\n"
       "%y = nn.combine %t, %ids, %slot : $q, $ids, $ids -> $y",
       "q:XQK", true},
      // Which slots are taken is for each layout to say; how many is not.
      {"count_queues", "x:BSK", "ids:BSC", "y:X",
       "%q, %slot = nn.dispatch %x, %ids : $x, $ids -> $q, $ids\n"
       "%n = nn.count_queues %ids, %slot slots @Q@ parts 12 : "
       "$ids, $ids -> tensor<@X@x12xi64>\n"
       "%none = arith.constant dense<0> : tensor<@X@xi64>\n"
       "%t = linalg.reduce { arith.addi } ins(%n : tensor<@X@x12xi64>) "
       "outs(%none : tensor<@X@xi64>) dimensions = [1]\n"
       "%y = arith.sitofp %t : tensor<@X@xi64> to $y",
       "q:XQK"},
      {"balance_loss", "s:BSX", "ids:BSC", "l:",
       "%l = nn.balance_loss %s, %ids coefficient 0.5 scope 1 : $s, $ids -> "
       "$l"},
      {"balance_loss_batch", "s:BSX", "ids:BSC", "l:",
       "%l = nn.balance_loss %s, %ids coefficient 0.5 scope 0 : $s, $ids -> "
       "$l"},
  };
}

static std::vector<Model> structuredModels() {
  return {
      {"contract", "x:BSK w:BKN", "", "y:BSN",
       onto("%y = linalg.contract indexing_maps = ["
            "affine_map<(b, s, n, k) -> (b, s, k)>, "
            "affine_map<(b, s, n, k) -> (b, k, n)>, "
            "affine_map<(b, s, n, k) -> (b, s, n)>] ins(%x, %w : $x, $w) "
            "outs(%f : $y) -> $y")},
      {"matmul", "x:SK w:KN a:SN", "", "y:SN",
       onto("%y = linalg.matmul ins(%x, %w : $x, $w) outs(%a : $y) -> $y")},
      {"batch_matmul", "x:BSK w:BKN", "", "y:BSN",
       onto("%y = linalg.batch_matmul ins(%x, %w : $x, $w) outs(%f : $y) -> "
            "$y")},
      {"generic_elementwise", "x:BSK w:K", "", "y:BSK",
       onto(
           "%y = linalg.generic {indexing_maps = ["
           "affine_map<(b, s, k) -> (b, s, k)>, affine_map<(b, s, k) -> (k)>, "
           "affine_map<(b, s, k) -> (b, s, k)>], iterator_types = "
           "[\"parallel\", "
           "\"parallel\", \"parallel\"]} ins(%x, %w : $x, $w) outs(%e : $y) {\n"
           "^bb0(%p: f32, %q: f32, %o: f32):\n  %t = math.tanh %p : f32\n"
           "  %m = arith.mulf %t, %q : f32\n  linalg.yield %m : f32\n} -> $y")},
      {"generic_sum", "x:BSK w:SK", "", "y:B",
       onto(
           "%y = linalg.generic {indexing_maps = ["
           "affine_map<(b, s, k) -> (b, s, k)>, affine_map<(b, s, k) -> (s, "
           "k)>, "
           "affine_map<(b, s, k) -> (b)>], iterator_types = [\"parallel\", "
           "\"reduction\", \"reduction\"]} ins(%x, %w : $x, $w) outs(%f : $y) "
           "{\n"
           "^bb0(%p: f32, %q: f32, %o: f32):\n  %m = arith.mulf %p, %q : f32\n"
           "  %a = arith.addf %o, %m : f32\n  linalg.yield %a : f32\n} -> $y")},
      {"generic_transposing", "x:BSK", "", "y:KBS",
       onto("%y = linalg.generic {indexing_maps = ["
            "affine_map<(b, s, k) -> (b, s, k)>, "
            "affine_map<(b, s, k) -> (k, b, s)>], iterator_types = "
            "[\"parallel\", "
            "\"parallel\", \"parallel\"]} ins(%x : $x) outs(%e : $y) {\n"
            "^bb0(%p: f32, %o: f32):\n  %m = arith.addf %p, %p : f32\n"
            "  linalg.yield %m : f32\n} -> $y")},
      {"generic_index", "x:BS", "", "y:BS",
       onto("%y = linalg.generic {indexing_maps = ["
            "affine_map<(b, s) -> (b, s)>, affine_map<(b, s) -> (b, s)>], "
            "iterator_types = [\"parallel\", \"parallel\"]} ins(%x : $x) "
            "outs(%e : $y) {\n^bb0(%p: f32, %o: f32):\n"
            "  %i = linalg.index 1 : index\n  %j = arith.index_cast %i : index "
            "to "
            "i64\n  %fl = arith.sitofp %j : i64 to f32\n"
            "  %m = arith.mulf %p, %fl : f32\n  linalg.yield %m : f32\n} -> "
            "$y")},
      {"reduce_sum", "x:BSK", "", "y:BK",
       onto("%y = linalg.reduce { arith.addf } ins(%x : $x) outs(%f : $y) "
            "dimensions = [1]")},
      {"reduce_max", "", "ids:BS", "y:B",
       onto("%x = arith.sitofp %ids : $ids to $x\n"
            "%y = linalg.reduce { arith.maximumf } ins(%x : $x) outs(%f : $y) "
            "dimensions = [1]"),
       "x:BS"},
      {"broadcast", "x:BK", "", "y:BSK",
       onto("%y = linalg.broadcast ins(%x : $x) outs(%e : $y) dimensions = "
            "[1]")},
      {"transpose", "x:BSK", "", "y:SKB",
       onto("%y = linalg.transpose ins(%x : $x) outs(%e : $y) permutation = "
            "[1, 2, "
            "0]")},
      {"map", "x:BK z:BK", "", "y:BK",
       onto("%y = linalg.map { arith.mulf } ins(%x, %z : $x, $z) outs(%e : "
            "$y)")},
      {"linalg_add", "x:BK z:BK", "", "y:BK",
       onto("%y = linalg.add ins(%x, %z : $x, $z) outs(%e : $y) -> $y")},
  };
}

static std::vector<Model> shapeModels() {
  return {
      {"expand_shape", "x:BZ", "", "y:BGD",
       "%y = tensor.expand_shape %x [[0], [1, 2]] output_shape [@B@, @G@, @D@] "
       ": $x into $y"},
      {"collapse_shape", "x:BGD", "", "y:BZ",
       "%y = tensor.collapse_shape %x [[0], [1, 2]] : $x into $y"},
      {"collapse_unit", "x:B1SK", "", "y:BM",
       "%y = tensor.collapse_shape %x [[0, 1], [2, 3]] : $x into $y"},
      {"heads", "x:BSK w:ZK", "", "y:BSGD",
       "%h = nn.linear %x, %w : $x, $w -> $h\n"
       "%y = tensor.expand_shape %h [[0], [1], [2, 3]] output_shape [@B@, @S@, "
       "@G@, @D@] : $h into $y",
       "h:BSZ", true},
      {"extract_slice", "x:BK", "", "y:BD",
       "%y = tensor.extract_slice %x[0, 1] [@B@, @D@] [1, 1] : $x to $y"},
      {"insert_slice", "s:BD x:BK", "", "y:BK",
       "%y = tensor.insert_slice %s into %x[0, 1] [@B@, @D@] [1, 1] : $s into "
       "$x"},
      {"empty_fill", "x:BK", "", "y:BK",
       onto("%one = arith.constant 1.5 : f32\n"
            "%g = linalg.fill ins(%one : f32) outs(%e : $y) -> $y\n"
            "%y = arith.mulf %x, %g : $y")},
      // One value read twice, and a sum of a partial value and a whole one.
      {"residual", "x:BK w:KK b:BK", "", "y:BK",
       "%h = nn.linear %x, %w : $x, $w -> $y\n"
       "%k = arith.addf %h, %x : $y\n%y = arith.addf %k, %b : $y",
       "", true},
      // A parameter with two uses whose gradients are partial differently.
      {"tied", "t:VK", "ids:BS", "y:BSV",
       "%x = nn.embedding %ids, %t : $ids, $t -> $x\n"
       "%y = nn.linear %x, %t : $x, $t -> $y",
       "x:BSK", true},
  };
}

const std::vector<Model> &mlir::parc::equiv::models() {
  static const std::vector<Model> all = [] {
    std::vector<Model> list = nnModels();
    for (const auto &more : {expertModels(), structuredModels(), shapeModels()})
      list.insert(list.end(), more.begin(), more.end());
    return list;
  }();
  return all;
}
