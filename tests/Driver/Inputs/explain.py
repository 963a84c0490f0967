"""Checks of `parc explain`.

explain.py change EXPLAINED COMMS NAME CHANGE   a change's figures against the program it gives
explain.py errors SOURCE                        every message's name has a long form
explain.py sent COMMS...                        stated bytes against the formulas
"""

import json
import math
import pathlib
import re
import subprocess
import sys


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def busiest(rows):
    stages = {}
    for row in rows:
        for stage in range(row["stages"][0], row["stages"][1] + 1):
            stages[stage] = stages.get(stage, 0) + row["per_step"]
    return max(stages.values(), default=0)


def change(explained, comms, name, text):
    rows = load(comms)["collectives"]
    here = busiest([r for r in rows if r["name"].endswith("." + name) or r["name"] == name])
    found = [c for c in load(explained)["changes"] if c["change"] == "--" + text]
    assert len(found) == 1, load(explained)
    assert math.isclose(found[0]["per_step"], here), (found, here)
    assert math.isclose(found[0]["per_step_in_all"], busiest(rows)), (found, busiest(rows))
    print("as compiled")


def errors(source):
    names = set()
    calls = r"\b(?:error|warning|fail|DiagnosticBridge \w+)\((.*?)\);"
    for path in sorted(pathlib.Path(source, "lib", "Driver").glob("*.cpp")):
        for call in re.findall(calls, path.read_text(encoding="utf-8"), re.DOTALL):
            last = re.search(r'"([a-z]+(?:-[a-z]+)*)"\s*$', call)
            # A message alone, such as "nothing", is no name.
            if last and call[: last.start()].rstrip().endswith(","):
                names.add(last.group(1))
    for path in sorted(pathlib.Path(source, "tests", "Driver").glob("*.test")):
        for line in path.read_text(encoding="utf-8").splitlines():
            said = re.search(r"(?:error|warning): .*\[([a-z-]+)\]$", line)
            if said:
                names.add(said.group(1))
    assert len(names) > 30, names
    missing = []
    for name in sorted(names):
        done = subprocess.run(["parc", "explain", name], capture_output=True, text=True)
        if done.returncode != 0 or "example " not in done.stdout or "fixed " not in done.stdout:
            missing.append(name)
    assert not missing, missing
    print("all explained")


def sent(*paths):
    stated = 0
    for path in paths:
        for row in load(path)["collectives"]:
            if not row["from"]:
                continue
            n = row["members"]
            ring = (2 if row["kind"] == "all_reduce" else 1) * (n - 1) / n
            if row["kind"] == "shift":  # A part goes to the next rank as it is.
                ring = 1
            bytes_sent = ring * row["bytes_per_call"]
            assert abs(row["bytes_sent"] - bytes_sent) <= 0.5, row
            stated += 1
    assert stated > 10
    print("as counted")


if __name__ == "__main__":
    {"change": change, "errors": errors, "sent": sent}[sys.argv[1]](*sys.argv[2:])
