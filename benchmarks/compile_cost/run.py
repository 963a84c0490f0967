#!/usr/bin/env python3
"""What a compile costs, and whether it grows with layers, ranks or micro-batches.

Compiles models for thousands of ranks to an emitted folder: a dense one of 405B
parameters with tp and pp, then with all of tp, sp, cp, pp, dp and ZeRO, and one
of 671B with experts. Beside each, the same cut to fewer layers, ranks,
micro-batches or experts. Prints seconds, memory, lines of emitted source, and
the ratio of seconds to the first of its group, as medians of alternating runs.
Exits with 1 where a case takes more than 3 seconds or 1 GiB.
Usage: run.py PARC [RUNS]
"""

import json
import os
import shutil
import statistics
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "..", "..", "tests", "models")
DENSE, EXPERTS = "llama-3.1-405b", "deepseek-v3"
LIMIT_SECONDS, LIMIT_MIB = 3, 1024
SIX = ["--sp", "--zero", "1"]

# Groups of cases: the first is what the others are held against. A case is a
# name, a model, changes to its config, the mesh, the batch and more flags.
GROUPS = [
    [
        ("405B: 126 layers, 16,384 ranks, 16 micro-batches", DENSE, {}, "8x16x128", 2048, []),
        ("16 layers", DENSE, {"num_hidden_layers": 16}, "8x16x128", 2048, []),
        ("128 ranks", DENSE, {}, "8x16x1", 16, []),
        ("64 micro-batches", DENSE, {}, "8x16x128", 8192, []),
    ],
    [
        ("405B: sp, cp 4, ZeRO 1, 16,384 ranks", DENSE, {}, "tp=8,cp=4,pp=16,dp=32", 512, SIX),
        ("16 layers", DENSE, {"num_hidden_layers": 16}, "tp=8,cp=4,pp=16,dp=32", 512, SIX),
        ("1,024 ranks", DENSE, {}, "tp=8,cp=4,pp=16,dp=2", 32, SIX),
    ],
    [
        ("671B: 61 layers, 256 experts, ep 64, 2,048 ranks", EXPERTS, {},
         "pp=16,dp=128", 2048, ["--ep", "64"]),
        ("32 layers", EXPERTS, {"num_hidden_layers": 32},
         "pp=16,dp=128", 2048, ["--ep", "64"]),
        ("1,024 ranks", EXPERTS, {}, "pp=16,dp=64", 1024, ["--ep", "64"]),
        ("64 experts, ep 64", EXPERTS, {"n_routed_experts": 64},
         "pp=16,dp=128", 2048, ["--ep", "64"]),
    ],
]

def compile_once(parc, model, folder, mesh, batch, flags):
    """Seconds (processor), MiB at the peak, lines of source."""
    out = os.path.join(folder, "out")
    shutil.rmtree(out, ignore_errors=True)
    command = [parc, model, "--mesh", mesh, "--batch", str(batch), "-o", out, "-q", *flags]
    pid = os.posix_spawn(parc, command, os.environ)
    begin = time.monotonic()
    _, status, usage = os.wait4(pid, 0)
    wall = time.monotonic() - begin
    if status != 0:
        sys.exit("failed: " + " ".join(command))
    source = os.path.join(out, "src")
    lines = 0
    for name in sorted(os.listdir(source)):
        with open(os.path.join(source, name), encoding="utf-8") as file:
            lines += sum(1 for _ in file)
    return usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024, lines


def write_model(folder, name, changes):
    """A config with these changes, in a folder of its own."""
    with open(os.path.join(MODELS, name, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    path = tempfile.mkdtemp(dir=folder)
    with open(os.path.join(path, "config.json"), "w", encoding="utf-8") as file:
        json.dump({**config, **changes}, file)
    return path


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    parc = os.path.abspath(sys.argv[1])
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    dear = False
    print(f"{'case':52} {'cpu s':>7} {'wall s':>7} {'MiB':>6} {'lines':>6}  ratio of cpu")
    for group in GROUPS:
        with tempfile.TemporaryDirectory() as folder:
            cases = [(case, write_model(folder, case[1], case[2])) for case in group]
            results = {case[0]: [] for case in group}
            for _ in range(runs):
                for (name, _, _, mesh, batch, flags), model in cases:
                    results[name].append(compile_once(parc, model, folder, mesh, batch, flags))
        base = None
        for name, rows in results.items():
            cpu, wall, memory, lines = (statistics.median(column) for column in zip(*rows))
            base = base or cpu
            dear = dear or cpu > LIMIT_SECONDS or memory > LIMIT_MIB
            print(f"{name:52} {cpu:7.3f} {wall:7.3f} {memory:6.0f} {lines:6.0f}  {cpu / base:.2f}")
    sys.exit(int(dear))


if __name__ == "__main__":
    main()
