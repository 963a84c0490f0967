"""Makes and compares small safetensors files.

tokens.py make FILE BATCH SEQ VOCAB     ids from a fixed sequence
tokens.py label IN OUT                  IN with the labels that are its default
tokens.py compare A B TOLERANCE         same names, relative difference below
"""

import sys

from safetensors_file import read, write_integers


def make(path, batch, seq, vocab):
    count = int(batch) * int(seq)
    ids = [(7 * i * i + 3 * i + 1) % int(vocab) for i in range(count)]
    write_integers(path, {"input_ids": ([int(batch), int(seq)], ids)})


def label(source, target):
    tensors = read(source)
    (batch, seq), ids = tensors["input_ids"]
    labels = list(ids[1:]) + [-100]
    for row in range(batch):
        labels[row * seq + seq - 1] = -100
    tensors["labels"] = [batch, seq], labels
    write_integers(target, tensors)


def compare(first, second, tolerance):
    a, b = read(first), read(second)
    if a.keys() != b.keys():
        sys.exit(f"other names: {sorted(a.keys() ^ b.keys())}")
    for name, (shape, values) in a.items():
        if b[name][0] != shape:
            sys.exit(f"{name}: other shapes")
        far = sum((x - y) ** 2 for x, y in zip(values, b[name][1])) ** 0.5
        size = sum(x * x for x in values) ** 0.5
        if not far <= float(tolerance) * size:
            sys.exit(f"{name}: differs by {far / size}")
    print(len(a), "tensors agree")


{"make": make, "label": label, "compare": compare}[sys.argv[1]](*sys.argv[2:])
