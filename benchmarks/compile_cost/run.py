#!/usr/bin/env python3
"""What a compile costs, and whether it grows with layers, ranks or micro-batches.

Compiles a 405B model for 16,384 ranks to an emitted folder, then the same model
cut to 16 layers, on 128 ranks, and with four times the micro-batches. Prints
seconds, memory, lines of emitted source, and ratios to the first, taken as
medians of alternating runs. Usage: run.py PARC [RUNS]
"""

import json
import os
import shutil
import statistics
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CONFIG = os.path.join(HERE, "..", "..", "tests", "models", "llama-3.1-405b", "config.json")


def compile_once(parc, model, folder, mesh, batch):
    """Seconds (processor), MiB at the peak, lines of source."""
    out = os.path.join(folder, "out")
    shutil.rmtree(out, ignore_errors=True)
    command = [parc, model, "--mesh", mesh, "--batch", str(batch), "-o", out, "-q"]
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


def main():
    parc = os.path.abspath(sys.argv[1])
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    with tempfile.TemporaryDirectory() as folder:
        with open(CONFIG, encoding="utf-8") as file:
            config = json.load(file)
        models = {}
        for layers in (126, 16):
            path = os.path.join(folder, f"layers{layers}")
            os.makedirs(path)
            with open(os.path.join(path, "config.json"), "w", encoding="utf-8") as file:
                json.dump({**config, "num_hidden_layers": layers}, file)
            models[layers] = path
        cases = {
            "126 layers, 16,384 ranks, 16 micro-batches": (126, "8x16x128", 2048),
            "16 layers": (16, "8x16x128", 2048),
            "128 ranks": (126, "8x16x1", 16),
            "64 micro-batches": (126, "8x16x128", 8192),
        }
        results = {name: [] for name in cases}
        for _ in range(runs):
            for name, (layers, mesh, batch) in cases.items():
                results[name].append(compile_once(parc, models[layers], folder, mesh, batch))
    base = None
    print(f"{'case':44} {'cpu s':>7} {'wall s':>7} {'MiB':>6} {'lines':>6}  ratio of cpu")
    for name, rows in results.items():
        cpu, wall, memory, lines = (statistics.median(column) for column in zip(*rows))
        base = base or cpu
        print(f"{name:44} {cpu:7.3f} {wall:7.3f} {memory:6.0f} {lines:6.0f}  {cpu / base:.2f}")


if __name__ == "__main__":
    main()
