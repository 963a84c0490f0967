"""Holds what a compiled program sends against the closed formulas of the field.

Usage: costs.py ROWS CONFIG SYMBOL=VALUE... [-- FLAG...]

ROWS are names of FORMULAS below, with commas. Every collective that the program
has must belong to exactly one of them, and every one of them must be met: call
by call, elements and bytes that a rank sends. Symbols: t, c, p, d, e sizes of
tp, cp, pp, dp and of the experts' group; m micro-batches, b sequences in each,
s tokens in a sequence; f slots of queues over the balanced load. An all-reduce of N elements over n ranks sends
2(n-1)/n N, the others (n-1)/n N.
"""

import json
import os
import re
import subprocess
import sys
from fractions import Fraction

BYTES = {"bf16": 2, "f32": 4, "i64": 8}


class Mismatch(Exception):
    """A count or a size that is not the formula's."""


def axes_of(row):
    """The axes, whole or a part of one: `dp.0`, `dp (groups of 8)`."""
    return {re.split("[. ]", part)[0] for part in row["axis"].split("+")}


class Program:
    """One stage's collectives, each to be claimed once, and the sizes."""

    def __init__(self, rows, config, sizes, flags, stage):
        self.left = [r for r in rows if r["stages"][0] <= stage <= r["stages"][1]]
        self.stage = stage
        self.first, self.last = stage == 0, stage == sizes["p"] - 1
        self.sp = "--sp" in flags
        self.config, self.n = config, sizes
        self.h = config.get("hidden_size", config.get("n_embd"))
        self.vocabulary = config["vocab_size"]
        self.heads = config.get("num_attention_heads", config.get("n_head"))
        self.kv_heads = config.get("num_key_value_heads", self.heads)
        self.dh = config.get("head_dim", self.h // self.heads)
        stacks = [r for r in self.left if r["stack"]]
        at = {r["layers"][stage - r["stages"][0]] for r in stacks}
        self.layers = at.pop() if at else 0
        self.tokens = sizes["b"] * sizes["s"] // sizes["c"]

    def take(self, **wanted):
        """Claims the rows with these fields; `over` names axes, 'in_stack' if."""
        over, in_stack = wanted.pop("over"), wanted.pop("in_stack", None)
        test = wanted.pop("test", lambda row: True)

        def fits(row):
            axes = axes_of(row)
            return (
                axes == set(over)
                and (in_stack is None or in_stack == bool(row["stack"]))
                and all(row[key] == value for key, value in wanted.items())
                and test(row)
            )

        taken = [r for r in self.left if fits(r)]
        self.left = [r for r in self.left if not fits(r)]
        return taken


def sent(kind, members, elements):
    """Elements that a rank sends."""
    if kind == "send":
        return Fraction(elements)
    return Fraction((members - 1) * elements, members) * (2 if kind == "all_reduce" else 1)


def same(what, expected, got):
    if expected != got:
        raise Mismatch(f"{what}: expected {expected}, got {got}")


def same_bytes(what, expected, got):
    """Bytes are reported exactly, or to the nearest whole one."""
    if got != int(expected + Fraction(1, 2)):
        same(what + ", bytes", float(expected), float(got))


def calls(program, what, kind, axis, direction, elements, in_stack=False, dtype=None, test=None):
    """Claims calls of these elements, one a layer in a stack, each of a size in
    `elements`, a list."""
    more = {"test": test} if test else {}
    rows = program.take(
        kind=kind, over=axis, direction=direction, in_stack=in_stack, **more
    )
    what = f"{what}, {kind} {direction}, stage {program.stage}"
    same(what, sorted(elements), sorted(r["elements"] for r in rows))
    for row in rows:
        same(what + ", dtype", dtype or "bf16", row["dtype"])
        size = BYTES[row["dtype"]]
        want = sent(kind, row["members"], row["elements"]) * size
        same_bytes(what, want, row["bytes_sent"])
        if direction != "update":
            same(what + ", calls", program.n["m"], row["count_per_step"] // (program.layers or 1)
                 if in_stack else row["count_per_step"])


# One function a formula. ----------------------------------------------------


def tensor(p):
    """2 AR forward, 2 AR backward, 8bsh(t-1)/t."""
    size = p.tokens * p.h
    for direction in ("forward", "backward"):
        calls(p, "tp", "all_reduce", ["tp"], direction, [size] * 2, True)


def sequence(p):
    """2 AG + 2 RS forward, the same backward; 2 AG more of what was saved split.
    With experts one of each, the other is that of their queues."""
    sizes = [p.tokens * p.h] * (1 if "num_local_experts" in p.config else 2)
    saved = lambda row: row["name"].endswith(".norm") and row["why"].startswith("the input")
    near = lambda row: not of_queues(row)
    calls(p, "re-gather", "all_gather", ["tp"], "backward", sizes, True, test=saved)
    for direction in ("forward", "backward"):
        for kind in ("all_gather", "reduce_scatter"):
            calls(p, "sp", kind, ["tp"], direction, sizes, True, test=near)


def of_queues(row):
    return any(word in row["name"] for word in ("queues", "expert", "combined"))


def expert_tensor(p):
    """Experts split over tp too: AG of queues and RS of what comes back, each
    way, and AG of what was saved split; of bs/c k h."""
    size = [p.tokens * p.config["num_experts_per_tok"] * p.h]
    saved = lambda row: row["why"].startswith("the input")
    calls(p, "re-gather", "all_gather", ["tp"], "backward", size, True, test=saved)
    for direction in ("forward", "backward"):
        for kind in ("all_gather", "reduce_scatter"):
            calls(p, "experts", kind, ["tp"], direction, size, True, test=of_queues)


def embedding(p):
    """1 AR forward; with SP a RS, whose transpose is an AG."""
    if p.first:
        size, near = [p.tokens * p.h], lambda row: row["stages"][0] == 0 and lookup(row)
        lookup = lambda row: row["name"].startswith("embed") or "than embed" in row["why"]
        kind = "reduce_scatter" if p.sp else "all_reduce"
        calls(p, "embedding", kind, ["tp"], "forward", size, test=near)
        if p.sp:
            calls(p, "embedding", "all_gather", ["tp"], "backward", size, test=near)


def cross_entropy(p):
    """3 AR forward in fp32 of a number a token, none backward."""
    if p.last:
        loss = lambda row: row["name"] == "loss"
        size = [p.tokens] * 3
        calls(p, "cross-entropy", "all_reduce", ["tp"], "forward", size, dtype="f32", test=loss)


def output(p):
    """The input's gradient: AR; with SP RS, and AG of the input forward."""
    if p.last:
        size = [p.tokens * p.h]
        kind = "reduce_scatter" if p.sp else "all_reduce"
        calls(p, "output", kind, ["tp"], "backward", size)
        if p.sp:
            calls(p, "output", "all_gather", ["tp"], "forward", size)


def boundary(p):
    """1 send a boundary, micro-batch and direction of bsh, /t with SP, /c."""
    size = p.tokens * p.h // (p.n["t"] if p.sp else 1)
    for direction, outgoing, incoming in (
        ("forward", not p.last, not p.first),
        ("backward", not p.first, not p.last),
    ):
        calls(p, "pp", "send", ["pp"], direction, [size] * outgoing)
        rows = p.take(kind="receive", over=["pp"], direction=direction)
        same("receives", [size] * incoming, [r["elements"] for r in rows])


def once_a_step(p, what, kind, axes, members, per_layer, single, repeats=1, direction="update"):
    """Parameters, gathered in bf16, or their gradients, reduced in f32: `per_layer`
    elements a layer and `single` outside, each in exactly one bucket, `repeats`
    times a step."""
    rows = p.take(kind=kind, over=axes, direction=direction, members=members,
                  test=lambda row: row["elements"] > 1)
    total = sum(r["elements"] * r["count_per_step"] for r in rows)
    what = f"{what}, {kind}, stage {p.stage}"
    same(what, (per_layer * p.layers + single) * repeats, total)
    for row in rows:
        same(what + ", dtype", "bf16" if kind == "all_gather" else "f32", row["dtype"])
        want = sent(kind, members, row["elements"]) * BYTES[row["dtype"]]
        same_bytes(what, want, row["bytes_sent"])
    return rows


def replicated(p):
    """Norms, biases behind a sum and routers are whole on each tp rank; their
    gradients are sums over parts, added up in one call a step."""
    biased = "n_embd" in p.config
    layer, last = (6 * p.h, 2 * p.h) if biased else (2 * p.h, p.h)
    layer += p.h * p.config.get("num_local_experts", 0)
    rows = once_a_step(p, "norms", "all_reduce", ["tp"] + replica_axes(p),
                       p.n["t"] * p.n["d"] * p.n["c"], layer, last if p.last else 0)
    same("calls a step for the norms' gradients", 1, sum(r["count_per_step"] for r in rows))


def dense_parameters(p):
    """Elements that a rank holds, but those of `replicated`: a layer's, and those
    outside on this stage."""
    c, t = p.config, p.n["t"]
    heads, kv_heads = p.heads * p.dh, p.kv_heads * p.dh
    mlp = 0 if "num_local_experts" in c else 3 * p.h * c["intermediate_size"]
    router = p.h * c.get("num_local_experts", 0)
    layer = (2 * p.h * heads + 2 * p.h * kv_heads + mlp) // t
    table, last = p.vocabulary * p.h // t, 0
    if not p.sp:
        layer, last = layer + 2 * p.h + router, p.h
    return layer, (table if p.first else 0) + (table + last if p.last else 0)


def replica_axes(p):
    return [axis for axis, symbol in (("dp", "d"), ("cp", "c")) if p.n[symbol] > 1]


def data(p):
    """AR of each gradient once a step, 2 psi (d-1)/d."""
    members = p.n["d"] * p.n["c"]
    once_a_step(p, "dp", "all_reduce", replica_axes(p), members, *dense_parameters(p))


def zero1(p):
    """RS of gradients and AG of parameters once a step."""
    for kind in ("reduce_scatter", "all_gather"):
        once_a_step(p, "zero 1", kind, replica_axes(p), p.n["d"] * p.n["c"], *dense_parameters(p))


def zero1_mixed(p):
    """(4+2) psi (d-1)/d bytes: reduced in fp32, parameters in bf16."""
    rows = p.take(over=["dp"], direction="update", test=lambda row: row["elements"] > 1)
    layer, single = dense_parameters(p)
    want = sent("all_gather", p.n["d"], layer * p.layers + single) * 6 / 10**9
    got = sum(r["bytes_sent"] * r["count_per_step"] for r in rows) / 10**9
    same("GB that a rank sends a step", f"{float(want):.2f}", f"{got:.2f}")


def zero2(p):
    """RS of gradients each micro-batch, AG of parameters once a step."""
    size, members = dense_parameters(p), p.n["d"]
    once_a_step(p, "zero 2", "reduce_scatter", ["dp"], members, *size, p.n["m"], "backward")
    once_a_step(p, "zero 2", "all_gather", ["dp"], members, *size)


def zero3(p):
    """AG forward, AG backward, RS, each micro-batch. A lookup's backward reads
    no table."""
    (layer, single), members, m = dense_parameters(p), p.n["d"], p.n["m"]
    table = p.vocabulary * p.h // p.n["t"]
    once_a_step(p, "zero 3", "all_gather", ["dp"], members, layer, single, m, "forward")
    once_a_step(p, "zero 3", "reduce_scatter", ["dp"], members, layer, single, m, "backward")
    if p.first:
        single -= table
    once_a_step(p, "zero 3", "all_gather", ["dp"], members, layer, single, m, "backward")


def context_gather(p):
    """AG of K and V forward; AG again and RS of dK and dV backward."""
    size = [p.tokens * p.n["c"] * p.kv_heads * p.dh // p.n["t"]] * 2
    for kind, direction in (
        ("all_gather", "forward"),
        ("all_gather", "backward"),
        ("reduce_scatter", "backward"),
    ):
        calls(p, "cp all-gather", kind, ["cp"], direction, size, True)


def ulysses(p):
    """4 all-to-all each way: (c-1)/c (bs/c)(2a+2g)dh."""
    whole = p.tokens * p.dh // p.n["t"]
    size = [whole * p.heads] * 2 + [whole * p.kv_heads] * 2
    for direction in ("forward", "backward"):
        calls(p, "cp ulysses", "all_to_all", ["cp"], direction, size, True)


def expert_sizes(p):
    c = p.config
    experts = c.get("num_local_experts", c.get("n_routed_experts"))
    ffn = c.get("moe_intermediate_size", c["intermediate_size"])
    return experts, ffn


def expert_axes(p):
    """ep lies on cp first, then on dp."""
    return (["cp"] if p.n["c"] > 1 else []) + (["dp"] if p.n["e"] > p.n["c"] else [])


def experts(p):
    """Dispatch and combine: 2 all-to-all forward, 2 backward, each of
    (bs/c) k h (e-1)/e, bs/(ct) with SP, of balanced routing, however long queues
    are. Before them, once each way, a number for each expert."""
    size = p.tokens // (p.n["t"] if p.sp else 1) * p.config["num_experts_per_tok"] * p.h
    counts = lambda row: row["dtype"] == "i64"
    for direction in ("forward", "backward"):
        same("balanced", True, all(r["balanced"] for r in p.left if not counts(r) and
             r["kind"] == "all_to_all" and r["direction"] == direction))
        calls(p, "ep, counts", "all_to_all", expert_axes(p), direction, [expert_sizes(p)[0]],
              True, dtype="i64", test=counts)
        calls(p, "ep", "all_to_all", expert_axes(p), direction, [size] * 2, True)


def expert_gradients(p):
    """Over the ranks that hold the same experts only: d c / e."""
    count, ffn = expert_sizes(p)
    members = p.n["d"] * p.n["c"] // p.n["e"]
    size = 3 * p.h * ffn * count // p.n["e"] // p.n["t"] if members > 1 else 0
    once_a_step(p, "experts", "all_reduce", ["dp"], members, size, 0)


def other_gradients(p):
    """Every other gradient over all replicas; of a model too long to size here."""
    rows = p.take(kind="all_reduce", over=replica_axes(p), direction="update",
                  members=p.n["d"] * p.n["c"], test=lambda row: row["elements"] > 1)
    same("empty", False, not rows)


def tied(p):
    """1 AR a step over the two stages that hold it, of Vh/t, of the largest part."""
    size = [-(-p.vocabulary // p.n["t"]) * p.h] if p.first or p.last else []
    table = lambda row: row["elements"] > 1
    calls(p, "tied", "all_reduce", ["pp"], "update", size, dtype="f32", test=table)


def scalar(p, what, axes):
    rows = p.take(kind="all_reduce", over=axes, direction="update", elements=1, dtype="f32")
    for row in rows:
        same(what + ", calls", 1, row["count_per_step"])
        same_bytes(what, sent("all_reduce", row["members"], 4), row["bytes_sent"])
    return rows


def norm(p):
    """1 scalar AR over every axis that a gradient is split on."""
    names = {"t": "tp", "p": "pp"}
    axes = [axis for symbol, axis in names.items() if p.n[symbol] > 1]
    axes += expert_axes(p) if p.n["e"] > 1 else []
    axes += replica_axes(p) if p.n["zero"] else []
    why = lambda row: "arith." not in row["why"] and "several stages" not in row["why"]
    rows = [r for r in p.left if r["elements"] == 1 and why(r)]
    if p.n["t"] == 1 and p.n["e"] == 1 and not p.n["zero"]:
        same("norm over more than pp", [], rows)
        return
    same("norm", 1, len(rows))
    p.left.remove(rows[0])
    got = axes_of(rows[0])
    same("norm, axes", sorted(axes), sorted(got))


def loss(p):
    """The loss and the count of its tokens, one scalar AR each; the norm's with
    them where only stages split it."""
    axes = replica_axes(p) + (["pp"] if p.n["p"] > 1 else [])
    most = 2 + (p.n["p"] > 1 and p.n["t"] == 1 and not p.n["zero"])
    subsets = [axes, [a for a in axes if a != "cp"], [a for a in axes if a == "pp"]]
    got = [r for subset in subsets if subset for r in scalar(p, "loss", subset)]
    same("scalars", True, 1 <= len(got) <= most)
    same("the loss is summed over", sorted(axes), sorted(
        {axis for row in got for axis in axes_of(row)}))


FORMULAS = {
    "tp": tensor,
    "sp": sequence,
    "embedding": embedding,
    "cross-entropy": cross_entropy,
    "output": output,
    "boundary": boundary,
    "replicated": replicated,
    "dp": data,
    "zero1": zero1,
    "zero1-mixed": zero1_mixed,
    "zero2": zero2,
    "zero3": zero3,
    "cp-gather": context_gather,
    "ulysses": ulysses,
    "ep": experts,
    "expert-tensor": expert_tensor,
    "expert-gradients": expert_gradients,
    "other-gradients": other_gradients,
    "tied": tied,
    "norm": norm,
    "loss": loss,
}


def main():
    rows, model, *rest = sys.argv[1:]
    flags = rest[rest.index("--") + 1 :] if "--" in rest else []
    given = rest[: rest.index("--")] if "--" in rest else rest
    n = {"t": 1, "c": 1, "p": 1, "d": 1, "e": 1, "m": 2, "b": 1, "s": 4096, "zero": 0, "f": 1}
    n.update((key, int(value)) for key, value in (word.split("=") for word in given))
    command = ["parc", "show", "comms", model, "--json", "--dtype", "bf16"]
    command += ["--mesh", "tp={t},cp={c},pp={p},dp={d}".format(**n), "--seq", str(n["s"])]
    command += ["--batch", str(n["b"] * n["m"] * n["d"]), "--micro-batches", str(n["m"])]
    command += ["--ep", str(n["e"]), "--moe-buffer-factor", str(n["f"])] if n["e"] > 1 else []
    command += ["--zero", str(n["zero"])] if n["d"] * n["c"] > 1 else []
    out = subprocess.run(command + flags, check=True, stdout=subprocess.PIPE).stdout
    with open(os.path.join(model, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    collectives = json.loads(out)["collectives"]
    try:
        for stage in range(n["p"]):
            program = Program(collectives, config, n, flags, stage)
            for name in rows.split(","):
                FORMULAS[name](program)
            for row in program.left:
                keys = ("kind", "axis", "direction", "elements", "stack", "name", "why")
                raise Mismatch("in no formula: " + ", ".join(str(row[key]) for key in keys))
    except Mismatch as mismatch:
        print(mismatch)
        sys.exit(1)


if __name__ == "__main__":
    main()
