"""Random sizes of every architecture with random plans, by the command line: what the
fuzzer (../../fuzz) does not reach. A seed is a case; the same seed, the same case.

random_models.py run MODELS [--from N] [--count N]
    `parc run --exact` and all that reports; MODELS is a folder of models.
random_models.py emit MODELS [--from N] [--count N] -- NUMBERS...
    The emitted program beside `parc run` in f64. NUMBERS is the call of
    tests/Target/Inputs/numbers.sh without tolerance and model.

Failing cases stay in the working folder, with their commands.
"""

import json
import os
import random
import shutil
import subprocess
import sys

# What a plan may be refused for: it has no meaning, and the message says so.
REASONS = (
    "more parts than units",
    "exchanges the sequence for heads",
    "nothing to split over experts",
    "capacity of at least one token",
    "are no scope",
)


def draw_dense(r, config):
    """Heads and widths of an attention layer."""
    heads = r.choice([1, 2, 3, 4]) * r.choice([1, 1, 2, 3, 4])
    shared = r.choice([d for d in (1, 2, 3, 4) if heads % d == 0])
    size = r.choice([4, 6, 8, 16])
    if "n_embd" in config:
        config |= {"n_head": heads, "n_embd": heads * size, "n_layer": r.choice([1, 2, 3, 5])}
        return
    config |= {"num_attention_heads": heads, "num_hidden_layers": r.choice([1, 2, 3, 5])}
    config["intermediate_size"] = r.choice([24, 30, 37, 56])
    if "kv_lora_rank" in config:
        config["num_key_value_heads"] = heads
        config["first_k_dense_replace"] = r.choice([0, 1, 2])
        return
    config["num_key_value_heads"] = heads // shared
    config["hidden_size"] = heads * size
    for key in ("layer_types", "max_window_layers"):
        config.pop(key, None)
    if "head_dim" in config:
        config["head_dim"] = size
        config["hidden_size"] = r.choice([24, 32, 40])


def draw_experts(r, config):
    """How many experts the model has; 0 without."""
    for key in ("num_local_experts", "num_experts"):
        if key in config:
            config[key] = r.choice([2, 3, 4, 6, 8])
            config["num_experts_per_tok"] = r.choice([1, 2])
            config["output_router_logits"] = r.random() < 0.4
            config["router_aux_loss_coef"] = 0.1
            return config[key]
    if "n_routed_experts" not in config:
        return 0
    groups = r.choice([1, 2])
    config["n_routed_experts"] = groups * r.choice([2, 3, 4])
    config |= {"n_group": groups, "topk_group": r.choice([1, groups])}
    config["num_experts_per_tok"] = r.choice([1, 2])
    return config["n_routed_experts"]


def draw_config(r, models):
    names = sorted(n for n in os.listdir(models) if n.startswith("tiny-"))
    with open(os.path.join(models, r.choice(names), "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    draw_dense(r, config)
    experts = draw_experts(r, config)
    config["vocab_size"] = r.choice([33, 50, 64, 97, 101])
    config["initializer_range"] = 0.3
    for key in ("attention_dropout", "attn_pdrop", "resid_pdrop", "embd_pdrop"):
        if key in config:
            config[key] = r.choice([0, 0, 0.1])
    return config, experts


def draw_experts_plan(r, experts, tp, cp, dp):
    """Flags of experts; ep takes cp first, then dp."""
    fits = [
        ep
        for ep in range(1, cp * dp + 1)
        if experts % ep == 0 and (cp % ep == 0 or (ep % cp == 0 and dp % (ep // cp) == 0))
    ]
    ep, flags = r.choice(fits), []
    if ep > 1:
        flags = ["--ep", str(ep)] + (["--sp"] if tp > 1 else [])
    if r.random() < 0.4:
        flags += ["--moe", "capacity", "--capacity-factor", r.choice(["0.7", "1", "1.25"])]
    if r.random() < 0.2:
        flags += ["--moe-scope", "micro-batch"]
    return flags


def draw_plan(r, config, experts):
    layers = config.get("num_hidden_layers", config.get("n_layer"))
    while True:
        tp, cp, dp = r.choice([1, 1, 2, 3, 4]), r.choice([1, 1, 2, 3, 4]), r.choice([1, 2, 2, 3, 4])
        pp = min(layers, r.choice([1, 1, 2, 3]))
        if tp * cp * dp * pp <= 24:
            break
    parts, micro = cp * dp, r.choice([1, 2, 3, 4])
    plan = ["--mesh", f"tp={tp},cp={cp},pp={pp},dp={dp}", "--micro-batches", str(micro)]
    plan += ["--batch", str(dp * micro + r.choice([0, 0, 1, 3]))]
    plan += ["--seq", str(r.choice([4 * cp, 8 * cp, 13, 16, 24]))]
    plan += ["--schedule", r.choice(["1f1b", "1f1b", "gpipe"])]
    if cp > 1:
        plan += ["--cp-kind", r.choice(["auto", "ring", "all-gather", "ulysses"])]
        plan += ["--cp-split", r.choice(["balanced", "contiguous"])]
    if parts > 1:
        zero = r.choice("0123")
        groups = [g for g in range(2, parts + 1) if parts % g == 0 and (g % cp == 0 or cp % g == 0)]
        plan += ["--zero", zero]
        if zero != "0" and r.random() < 0.3:
            plan += ["--zero-group", str(r.choice(groups))]
    if experts:
        plan += draw_experts_plan(r, experts, tp, cp, dp)
    if tp > 1 and "--sp" not in plan and r.random() < 0.6:
        plan.append("--sp")
    return plan


def call(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def run_case(r, model, plan):
    """The command that failed and what it said; no command where all was well."""
    plan = [*plan, "--dtype", r.choice(["f32", "f64", "bf16"])]
    steps = ["--exact", "--steps", r.choice("112")]
    commands = [["parc", "run", model, *plan, *steps]]
    for topic in ("comms", "layouts", "schedule"):
        commands.append(["parc", "show", topic, model, *plan])
    commands.append(["parc", "compile", model, *plan, "-o", "out", "--force"])
    for command in commands:
        code, text = call(command)
        if code or (command[1] == "run" and "exactly, modulo" not in text):
            return command, text
    return None, ""


def emit_case(numbers, model, plan):
    plan = [*plan, "--dtype", "f64"]
    code, text = call(["parc", model, *plan, "--stop-after", "scheduled"])
    if code:
        return ["parc", model, *plan], text
    command = [*numbers, "1e-8", model, *plan]
    code, text = call(command)
    return (None, "") if code == 0 and "tensors agree" in text else (command, text)


def main(mode, models, arguments):
    numbers = arguments[arguments.index("--") + 1 :] if "--" in arguments else []
    options = dict(zip(arguments[::2], arguments[1::2]))
    first, count = int(options.get("--from", 1)), int(options.get("--count", 10))
    tally = {"equal": 0, "refused": 0, "wrong": 0}
    for seed in range(first, first + count):
        r = random.Random(seed)
        config, experts = draw_config(r, models)
        plan, model = draw_plan(r, config, experts), f"model-{seed}"
        os.makedirs(model, exist_ok=True)
        with open(os.path.join(model, "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        if mode == "run":
            failed, text = run_case(r, model, plan)
        else:
            failed, text = emit_case(numbers, model, plan)
        refused = failed and any(reason in text for reason in REASONS)
        outcome = "refused" if refused else "wrong" if failed else "equal"
        tally[outcome] += 1
        if outcome == "wrong":
            print(" ".join(failed), text, sep="\n", flush=True)
        else:
            shutil.rmtree(model)
    print(f"{count} cases: " + ", ".join(f"{number} {name}" for name, number in tally.items()))
    return tally["wrong"] > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
