"""The meshes and flags that every small model runs with.

A plan is a command line. The models have 3 layers, 4 heads (2 of keys where
they are fewer), sequences of 16, batches of 4 and 97 words: hardly a size here
divides. `check` says whether each pair of features meets in some plan.
"""

import itertools
import sys

ALONE = [
    "tp=1",
    "tp=2",
    "tp=3",  # 4 heads, 2 of keys
    "tp=4 --micro-batches 2",  # a key head on two ranks
    "tp=2 --sp --micro-batches 4",
    "tp=3 --sp",
    "tp=4 --sp --schedule gpipe --micro-batches 2",
    "cp=2 --cp-kind all-gather --micro-batches 2",
    "cp=3 --cp-kind all-gather",  # 16 positions
    "cp=4 --cp-kind all-gather --micro-batches 4",
    "cp=2 --cp-kind ulysses",
    "cp=3 --cp-kind ulysses --micro-batches 2",
    "cp=4 --cp-kind ulysses",
    "cp=2 --cp-kind ring",
    "cp=3 --cp-kind ring --micro-batches 2",
    "dp=2 --micro-batches 2",
    "dp=3",  # 4 sequences
    "pp=2 --micro-batches 4",
    "pp=3 --micro-batches 2 --schedule gpipe",
    "dp=2 --zero 1",
    "dp=3 --zero 2",
    "dp=3 --zero 3",
]

PAIRS = [
    "tp=2,cp=3 --cp-kind all-gather",
    "tp=3,cp=2 --cp-kind all-gather --micro-batches 2",
    "tp=2,cp=2 --sp --cp-kind all-gather",
    "tp=4,cp=3 --sp --cp-kind all-gather",
    "tp=2,cp=2 --cp-kind ulysses --micro-batches 2",
    "tp=2,cp=2 --sp --cp-kind ulysses",
    "tp=2,cp=3 --cp-kind ring",
    "tp=3,cp=2 --sp --cp-kind ring --micro-batches 2",
    "tp=2,dp=2 --micro-batches 2",
    "tp=3,dp=3 --sp",
    "tp=2,pp=2 --micro-batches 2 --schedule gpipe",
    "tp=2,pp=3 --sp --micro-batches 4",
    "cp=2,dp=2 --cp-kind all-gather --micro-batches 2",
    "cp=3,pp=2 --cp-kind all-gather --micro-batches 2",
    "cp=4,dp=2 --cp-kind ulysses",
    "cp=2,pp=3 --cp-kind ulysses --micro-batches 2 --schedule gpipe",
    "cp=3,dp=2 --cp-kind ring",
    "cp=2,pp=3 --cp-kind ring --micro-batches 4",
    "dp=2,pp=2 --micro-batches 2",
    "dp=3,pp=3 --schedule gpipe",
    "tp=2,dp=2 --zero 1 --micro-batches 2",
    "tp=3,dp=2 --zero 2",
    "tp=2,dp=3 --zero 3",
    "tp=2,dp=3 --sp --zero 1",
    "tp=2,dp=2 --sp --zero 2 --micro-batches 2",
    "tp=3,dp=2 --sp --zero 3",
    "cp=2,dp=2 --cp-kind all-gather --zero 1",
    "cp=3,dp=2 --cp-kind all-gather --zero 2 --micro-batches 2",
    "cp=2 --cp-kind all-gather --zero 3",
    "cp=2,dp=2 --cp-kind ulysses --zero 1 --micro-batches 2",
    "cp=2,dp=3 --cp-kind ulysses --zero 2",
    "cp=2,dp=2 --cp-kind ulysses --zero 3",
    "cp=2,dp=2 --cp-kind ring --zero 1",
    "cp=3,dp=2 --cp-kind ring --zero 2",
    "cp=2,dp=2 --cp-kind ring --zero 3",
    "dp=2,pp=2 --zero 1 --micro-batches 2",
    "dp=3,pp=2 --zero 2",
    "dp=2,pp=3 --zero 3 --micro-batches 2",
]

MIXES = [
    "tp=2,cp=2,dp=2,pp=2 --sp --cp-kind all-gather --micro-batches 2",
    "tp=2,cp=2,dp=2,pp=2 --sp --cp-kind ulysses --micro-batches 2",
    "tp=3,cp=2,dp=2,pp=3 --sp --cp-kind all-gather --micro-batches 2",
    "tp=2,cp=3,dp=3,pp=2 --sp --cp-kind all-gather --schedule gpipe",
    "tp=2,cp=2,dp=2,pp=3 --sp --cp-kind ring --micro-batches 2",
    "tp=3,cp=2,dp=2,pp=2 --sp --cp-kind ring --schedule gpipe",
    "tp=4,cp=2,dp=2,pp=2 --cp-kind all-gather --rank-order pp-dp-cp-tp",
    "tp=2,cp=2,dp=3,pp=3 --sp --cp-kind ulysses --rank-order dp-tp-pp-cp",
    "tp=2,cp=2,dp=2,pp=2 --sp --cp-kind all-gather --zero 1 --micro-batches 2",
    "tp=2,cp=2,dp=2,pp=2 --sp --cp-kind ulysses --zero 2 --micro-batches 2",
    "tp=2,cp=2,dp=2,pp=2 --sp --cp-kind ring --zero 3 --micro-batches 2",
    "tp=3,cp=2,dp=3,pp=2 --sp --cp-kind ring --zero 1",
    "tp=2,cp=3,dp=2,pp=3 --sp --cp-kind ring --zero 2 --micro-batches 2",
    "tp=3,cp=2,dp=2,pp=3 --sp --cp-kind all-gather --zero 3",
]

EXPERTS = [
    "dp=2 --ep 2 --micro-batches 2",
    "dp=4 --ep 4",
    "cp=2 --cp-kind all-gather --ep 2",
    "cp=2,dp=3 --cp-kind all-gather --ep 2",
    "cp=2,dp=2 --cp-kind ulysses --ep 4 --micro-batches 2",
    "cp=2,dp=2 --cp-kind ring --ep 4",
    "tp=2,dp=2 --sp --ep 2",
    "tp=3,cp=2 --sp --cp-kind all-gather --ep 2",
    "dp=2,pp=3 --ep 2 --micro-batches 2",
    "dp=4 --ep 2 --zero 1",
    "dp=4 --ep 4 --zero 2",
    "dp=4,pp=2 --ep 2 --zero 3",
    "tp=2,cp=2,dp=2,pp=2 --sp --cp-kind all-gather --ep 2 --micro-batches 2",
    "tp=2,cp=2,dp=2,pp=3 --sp --cp-kind ulysses --ep 4 --micro-batches 2",
    "tp=3,cp=2,dp=2,pp=2 --sp --cp-kind all-gather --ep 4 --micro-batches 2",
    "tp=2,cp=2,dp=3,pp=2 --sp --cp-kind all-gather --ep 2 --schedule gpipe",
    "tp=4,cp=2,dp=2,pp=2 --sp --cp-kind all-gather --ep 4",
    "tp=2,cp=2,dp=2,pp=2 --sp --cp-kind all-gather --ep 2 --rank-order pp-dp-cp-tp",
    "tp=2,cp=2,dp=2,pp=2 --sp --cp-kind all-gather --ep 4 --zero 1 --micro-batches 2",
    "tp=2,cp=2,dp=2,pp=2 --sp --cp-kind ulysses --ep 2 --zero 2 --micro-batches 2",
    "tp=2,cp=2,dp=2,pp=2 --sp --cp-kind ring --ep 4 --zero 3 --micro-batches 2",
    "tp=2,cp=2,dp=4,pp=2 --sp --cp-kind all-gather --ep 4 --zero 1",
    "tp=3,cp=2,dp=2,pp=2 --sp --cp-kind ring --ep 2 --zero 2 --micro-batches 2",
    "tp=2,cp=2,dp=2,pp=3 --sp --cp-kind ulysses --ep 4 --zero 3 --micro-batches 2",
]


def plans(experts):
    """The command lines of a dense model, or of one with experts."""
    every = ALONE + PAIRS + MIXES
    if experts:
        # Parts of a sequence that are unequal need longer queues.
        every = [f"{plan} --moe-buffer-factor 8" for plan in every + EXPERTS]
    return every


def features(plan):
    """The kinds of parallelism of a plan."""
    words = plan.split()
    sizes = dict(axis.split("=") for axis in words[0].split(","))
    found = {axis for axis in ("tp", "dp", "pp") if int(sizes.get(axis, 1)) > 1}
    if "--sp" in words:
        found.add("sp")
    for flag, name in (("--cp-kind", "cp "), ("--zero", "zero "), ("--ep", "ep")):
        if flag in words:
            value = words[words.index(flag) + 1]
            found.add(name if flag == "--ep" else name + value)
    return found


def check():
    for experts in (False, True):
        listed = [features(plan) for plan in plans(experts)]
        every = sorted(set().union(*listed))
        for pair in itertools.combinations(every, 2):
            kinds = {name.split()[0] for name in pair}
            # One kind of cp and one level of ZeRO at a time.
            if len(kinds) == 2 and not any(found.issuperset(pair) for found in listed):
                sys.exit(f"no plan has both {pair[0]} and {pair[1]}")
        axes = {name.split()[0] for name in every}
        full = sum({name.split()[0] for name in found} == axes for found in listed)
        if len(listed) < 24 or full < 6:
            sys.exit(f"{len(listed)} plans, {full} of them with all axes: too few")
        name = "with experts" if experts else "dense"
        print(f"{name}: {len(listed)} plans, all pairs of {', '.join(every)}; {full} have all axes")


if __name__ == "__main__":
    check()
