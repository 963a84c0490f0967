"""expect.py CODE COMMAND...: runs a command, stderr into stdout, and fails
unless it ends with CODE."""

import subprocess
import sys

code = int(sys.argv[1])
done = subprocess.run(sys.argv[2:], stderr=subprocess.STDOUT, check=False)
if done.returncode != code:
    print(f"expected exit status {code}, got {done.returncode}")
    sys.exit(1)
