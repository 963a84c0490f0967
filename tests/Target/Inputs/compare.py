"""Compares what an emitted program saved with what `parc run` saved.

compare.py EMITTED RUN TOLERANCE

Loss, norm, gradients and parameters agree within TOLERANCE, the norm of the
difference over the norm; a parameter within a hundred times of that, since
Adam divides the rounding of a gradient that is zero in theory by itself.
"""

import math
import sys

from safetensors_file import read


def main(emitted, run, tolerance):
    got, expected = read(emitted), read(run)
    expected.pop("logits", None)  # Emitted programs do not observe.
    # A parameter that only chooses has no gradient; a program's slot is zero.
    for name in sorted(got.keys() - expected.keys()):
        if name.startswith("grad.") and not any(got[name][1]):
            del got[name]
    if got.keys() != expected.keys():
        sys.exit(f"other names: {sorted(got.keys() ^ expected.keys())}")
    for name, (_, values) in expected.items():
        norm = math.sqrt(sum(v * v for v in values)) or 1.0
        error = math.sqrt(sum((a - b) ** 2 for a, b in zip(got[name][1], values)))
        limit = float(tolerance) * (100 if name.startswith("param.") else 1)
        if len(got[name][1]) != len(values) or not error <= limit * norm:
            sys.exit(f"{name}: relative difference {error / norm}")
    print(f"{len(got)} tensors agree")


main(*sys.argv[1:])
