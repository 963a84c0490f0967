"""Runs `parc explain` for every message that the driver lists, and checks that
each has a text and an example of what goes wrong and of what to write."""

import re
import subprocess
import sys

source = open(f"{sys.argv[1]}/lib/Driver/ErrorTexts.cpp").read()
names = re.findall(r'^    \{"([a-z-]+)"', source, re.M)
for name in names:
    text = subprocess.run(["parc", "explain", name], capture_output=True, text=True, check=True)
    lines = [line for line in text.stdout.splitlines() if line.strip()]
    if len(lines) < 3:
        sys.exit(f"{name}: expected a text and an example, got {text.stdout!r}")
print(len(names), "long forms, each explained")
