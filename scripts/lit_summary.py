#!/usr/bin/env python3
"""Prints lit's result as `lit: N passed, N failed, N skipped`.

Reads the xunit file that lit wrote; fails if it holds no executed test.
"""

import sys
import xml.etree.ElementTree as ElementTree


def main(path):
    tests = failures = skipped = 0
    for suite in ElementTree.parse(path).getroot().iter("testsuite"):
        tests += int(suite.get("tests", 0))
        failures += int(suite.get("failures", 0))
        skipped += int(suite.get("skipped", 0))
    passed = tests - failures - skipped
    print(f"lit: {passed} passed, {failures} failed, {skipped} skipped")
    return 0 if passed > 0 and failures == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
