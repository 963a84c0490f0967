"""Dropout's masks depend on nothing but the element and the step: with a learning
rate of zero, every mesh has the same losses, another in every step.

dropout.py     makes its model in the working folder
"""

import json
import subprocess
import sys

STEPS = 3
PLANS = [
    "tp=1",
    "tp=1 --micro-batches 5",
    "tp=2 --micro-batches 2",
    "tp=3 --sp",
    "cp=2 --cp-kind all-gather --micro-batches 2",
    "cp=3 --cp-kind all-gather",
    "cp=3 --cp-kind ulysses --micro-batches 3",
    "cp=3 --cp-kind ring --micro-batches 2",
    "cp=2,tp=2 --cp-kind ring --cp-split contiguous",
    "dp=2 --micro-batches 2",
    "dp=3",
    "pp=3 --micro-batches 4",
    "tp=2,cp=2,dp=2,pp=2 --sp --cp-kind all-gather --micro-batches 2",
    "tp=3,cp=2,dp=2 --sp --cp-kind all-gather",
    "tp=2,cp=2,pp=3 --cp-kind ulysses --micro-batches 5 --schedule gpipe",
]


def config(rate):
    return {
        "model_type": "gpt2", "n_embd": 12, "n_head": 6, "n_layer": 3, "n_inner": 10,
        "n_positions": 16, "vocab_size": 11, "attn_pdrop": rate, "embd_pdrop": rate,
        "resid_pdrop": rate, "initializer_range": 0.5,
    }  # fmt: skip


def losses(plan):
    """The losses of a run that agreed with the unpartitioned model."""
    command = [
        "parc", "run", "config.json", "--mesh", *plan.split(), "--batch", "5", "--seq", "7",
        "--dtype", "f64", "--exact", "--lr", "0", "--steps", str(STEPS), "--json",
    ]  # fmt: skip
    if "--micro-batches" not in command:
        command += ["--micro-batches", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    lines = [json.loads(line) for line in done.stdout.splitlines() if '"step"' in line]
    return [line["loss"] for line in lines]


def write(rate):
    with open("config.json", "w", encoding="utf-8") as file:
        json.dump(config(rate), file)


def main():
    write(0.0)
    if len({round(loss, 9) for loss in losses(PLANS[0])}) > 1:
        sys.exit("steps differ by something else than masks")
    write(0.25)
    first = losses(PLANS[0])
    for plan in PLANS[1:]:
        for step, (got, expected) in enumerate(zip(losses(plan), first, strict=True), 1):
            if abs(got - expected) > 1e-12 * abs(expected):
                sys.exit(f"{plan}: the loss of step {step} is {got}, on one rank {expected}")
    if len({round(loss, 9) for loss in first}) < STEPS:
        sys.exit(f"steps have the same masks: {first}")
    print(f"the same losses with {len(PLANS)} plans, another in each of {STEPS} steps")


if __name__ == "__main__":
    main()
