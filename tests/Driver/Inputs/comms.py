"""Sums the rows of `parc show comms --json`: comms.py tp|dp|pp|cp|ring|zero FILE..."""

import json
import sys


def rows(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)["collectives"]


def tensor_parallel(path):
    layers = [r for r in rows(path) if r["stack"] and r["direction"] != "update"]
    each = {d: [r for r in layers if r["direction"] == d] for d in ("forward", "backward")}
    assert all(r["count_per_micro_batch"] == 32 for r in layers)
    sent = sum(r["bytes_sent"] for r in layers)
    print(
        f"a layer: {len(each['forward'])} forward, {len(each['backward'])} backward,",
        f"{sent / 2**20} MiB",
    )
    single = [r for r in rows(path) if not r["stack"] and r["direction"] != "update"]
    big = [r for r in single if r["elements"] == 8192 * 4096]
    loss = [r for r in single if r["elements"] == 8192]
    assert len(big) + len(loss) == len(single)
    names = [r["direction"] for r in big]
    print(
        f"embedding {names.count('forward')}, loss {len(loss)},",
        f"head {names.count('backward')}",
    )


def data_parallel(*paths):
    totals = []
    for path in paths:
        update = [r for r in rows(path) if r["axis"] == "dp" and r["direction"] == "update"]
        assert len(update) == len([r for r in rows(path)])
        totals.append(sum(r["elements"] * r["count_per_step"] for r in update if r["elements"] > 1))
    assert len(set(totals)) == 1, totals
    print(f"{totals[0]:,} elements of gradients, once a step")


def pipeline(path):
    for row in sorted(rows(path), key=lambda r: (r["stages"], r["direction"])):
        if row["kind"] == "send":
            print(row["role"], row["direction"], row["count_per_step"], "of", row["elements"])


def ring(path):
    for direction in ("forward", "backward"):
        mine = [r for r in rows(path) if r["kind"] == "shift" and r["direction"] == direction]
        assert all(r["axis"] == "cp" for r in mine)
        print(f"{direction} {len(mine)} shift")


def context_parallel(path):
    moved = [r for r in rows(path) if r["axis"] == "cp" and r["stack"]]
    moved = [r for r in moved if r["direction"] != "update"]
    assert all(r["count_per_micro_batch"] == 32 for r in moved)
    for direction in ("forward", "backward"):
        mine = [r for r in moved if r["direction"] == direction]
        sent = int(sum(r["bytes_sent"] for r in mine))
        kinds = sorted({r["kind"] for r in mine})
        print(f"{direction} {len(mine)} {'+'.join(kinds)}, {sent:,} bytes a layer")


def zero(*paths):
    """Elements that take part in a step, by kind; bytes that a rank sends."""
    for path in paths:
        totals = {"reduce_scatter": 0, "all_gather": 0, "all_reduce": 0}
        sent = 0
        for row in rows(path):
            sent += row["bytes_sent"] * row["count_per_step"]
            # Losses and norms are scalars.
            if row["elements"] > 1:
                assert row["axis"] == "dp", row
                totals[row["kind"]] += row["elements"] * row["count_per_step"]
        print(*(f"{kind} {count:,}," for kind, count in totals.items()), f"{sent / 1e9:.2f} GB")


{
    "tp": tensor_parallel,
    "dp": data_parallel,
    "pp": pipeline,
    "cp": context_parallel,
    "ring": ring,
    "zero": zero,
}[sys.argv[1]](*sys.argv[2:])
