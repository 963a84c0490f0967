"""Whether two reports of communication move the same values the same way."""

import collections
import json
import sys

KEYS = ("kind", "axis", "direction", "stages", "elements", "bytes_per_call", "per_step")


def moves(path):
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)["collectives"]
    return collections.Counter(tuple(str(row.get(key)) for key in KEYS) for row in rows)


first, second = moves(sys.argv[1]), moves(sys.argv[2])
for row in first - second:
    print("only in the first:", row)
for row in second - first:
    print("only in the second:", row)
sys.exit(first != second or not first)
