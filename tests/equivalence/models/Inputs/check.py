"""Runs `parc run` with many meshes and flags and compares with what transformers
computed.

check.py expected MODEL [--all]   logits, loss, every gradient, gradient norm and
                                  the loss after one step of AdamW, in f64 to
                                  1e-9, in f32 to 2e-5, and modulo 2^61-1
check.py masked MODEL             rows 0 and 1 keep their first three targets
check.py balance MODEL            what the loss that balances experts adds: by
                                  hand where routers are zero, and the same with
                                  the masked labels as with all

MODEL is a folder with config.json, model.safetensors and expected.safetensors.
The plans are those of plans.py. All run in f64 and exactly; without --all, every
eighth takes the step of AdamW, and f32 runs with three.
"""

import json
import os
import subprocess
import sys

from plans import plans
from safetensors_file import read, write_integers


def norm(values):
    return sum(x * x for x in values) ** 0.5


def difference(name, got, expected):
    """Norm of the difference over norm; infinite for another shape."""
    if got is None or len(got[1]) != len(expected[1]):
        sys.exit(f"{name}: missing or of another shape")
    far = norm(x - y for x, y in zip(got[1], expected[1]))
    return far / (norm(expected[1]) or 1.0)


def run(model, plan, extra, save, inputs):
    command = [
        "parc", "run", model, "--mesh", *plan.split(), "--inputs", inputs,
        "--save", save, "-q", *extra,
    ]  # fmt: skip
    if "--micro-batches" not in command:
        command += ["--micro-batches", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return read(save)


def has_experts(model):
    with open(os.path.join(model, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    return any(config.get(key) for key in ("num_local_experts", "n_routed_experts"))


def expectation(model):
    """What transformers computed for the first step, and its loss in the second."""
    expected = read(os.path.join(model, "expected.safetensors"))
    grads = [value for name, value in expected.items() if name.startswith("grad.")]
    expected["grad_norm"] = [1], [norm(norm(values) for _, values in grads)]
    after = expected.pop("loss_after_adamw")
    del expected["input_ids"]
    return expected, after


def compare(model, plan, dtype, steps, expected, after):
    """Largest differences of one step, or of two."""
    given = os.path.join(model, "expected.safetensors")
    extra = ["--dtype", dtype] + (["--exact"] if dtype == "f64" else [])
    got = run(model, plan, extra, "first.st", given)
    worst = max((difference(name, got.get(name), value), name) for name, value in expected.items())
    if steps == 1:
        return worst
    got = run(model, plan, [*extra, "--steps", "2"], "second.st", given)
    stepped = difference("loss_after_adamw", got.get("loss"), after)
    return max(worst, (stepped, "loss_after_adamw"))


def check_expected(model, every):
    bounds = {"f64": 1e-9, "f32": 2e-5}
    worst, runs = {}, 0
    expected, after = expectation(model)
    listed = plans(has_experts(model))
    for index, plan in enumerate(listed):
        for dtype in bounds:
            # Three in f32: one rank, one in the middle, the last mix.
            if dtype == "f32" and not every and index not in (0, 12, len(listed) - 1):
                continue
            steps = 2 if every or index % 8 == 0 else 1
            size, name = compare(model, plan, dtype, steps, expected, after)
            worst[dtype] = max(worst.get(dtype, 0), size)
            if not size <= bounds[dtype]:
                sys.exit(f"{plan} {dtype}: {name} differs by {size}")
            runs += 1
    print(os.path.basename(model), f"agrees: {len(listed)} plans, {runs} runs,", end=" ")
    print(f"gradient norm {expected['grad_norm'][1][0]:.6f}")
    for dtype, size in sorted(worst.items()):
        print(f"{dtype}: {size:.1e}")


def write_masked(model, path):
    """Rows 0 and 1 keep their first three targets, the others all."""
    (batch, seq), ids = read(os.path.join(model, "expected.safetensors"))["input_ids"]
    labels = []
    for row in range(batch):
        shifted = list(ids[row * seq + 1 : (row + 1) * seq]) + [-100]
        labels += shifted[:3] + [-100] * (seq - 3) if row < 2 else shifted
    tensors = {"input_ids": ([batch, seq], ids), "labels": ([batch, seq], labels)}
    write_integers(path, tensors)


def check_masked(model):
    write_masked(model, "masked.st")
    runs, first = 0, None
    for plan in plans(has_experts(model))[::2]:
        got = run(model, plan, ["--dtype", "f64"], "got.st", "masked.st")
        first = first or got
        for name, value in first.items():
            if not difference(name, got.get(name), value) <= 1e-9:
                sys.exit(f"{plan}: {name} is not that of one rank")
        runs += 1
    print(os.path.basename(model), f"masked: loss {first['loss'][1][0]:.6f} with {runs} plans")


def with_balance(model, folder, weight, routers):
    """A copy of the model with a loss that balances experts; routers as they are or zero."""
    os.makedirs(folder)
    with open(os.path.join(model, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    config |= {"output_router_logits": True, "router_aux_loss_coef": weight}
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    with open(os.path.join(model, "model.safetensors"), "rb") as file:
        data = bytearray(file.read())
    size = int.from_bytes(data[:8], "little")
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if routers == 0 and name.endswith("block_sparse_moe.gate.weight"):
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            data[begin:end] = bytes(end - begin)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(data)
    return config["num_experts_per_tok"]


def check_balance(model):
    """What transformers' load_balancing_loss_func gives: experts times the sum over them of
    choices a token times mean score, so choices a token where all scores are equal."""
    given, weight = os.path.join(model, "expected.safetensors"), 0.5
    write_masked(model, "masked.st")
    for name, routers in (("even", 0), ("learnt", 1)):
        chosen = with_balance(model, name, weight, routers)
        with_balance(model, name + "-plain", 0.0, routers)
        for plan in BALANCED:
            added = []
            for inputs in (given, "masked.st"):
                losses = [
                    run(folder, plan, ["--dtype", "f64"], "got.st", inputs)["loss"][1][0]
                    for folder in (name, name + "-plain")
                ]
                added.append(losses[0] - losses[1])
            wrong = abs(added[0] - added[1]) if "global" in plan or routers == 0 else 0
            if routers == 0:
                wrong = max(wrong, abs(added[0] - weight * chosen))
            if not wrong <= 1e-12 or not added[0] > 0:
                sys.exit(f"{name} routers, {plan}: adds {added[0]} and {added[1]}")
        print(f"{name}: adds {added[0]:.6f} with {len(BALANCED)} plans")


# With the scope of the whole batch first, and in the last plan.
BALANCED = [
    "1x1x1 --moe-scope global",
    "tp=2,dp=3 --sp --moe-scope global",
    "cp=2,dp=2,pp=2 --ep 2 --moe-scope global",
    "1x1x2 --moe-scope micro-batch --micro-batches 2",
    "tp=2,cp=3 --sp --micro-batches 4",
    "cp=2,dp=2 --ep 4 --cp-kind ring --moe-scope global",
]


if __name__ == "__main__":
    if sys.argv[1] == "masked":
        check_masked(sys.argv[2])
    elif sys.argv[1] == "balance":
        check_balance(sys.argv[2])
    else:
        check_expected(sys.argv[2], "--all" in sys.argv)
