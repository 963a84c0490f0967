#!/usr/bin/env python3
"""Runs parc's own rules over the checkout, and every rule's self-test before.

Each rule is a function over a tree of texts; rules.py says what a rule owes.
Usage: lint.py [--self-test] [--list]
"""

import os
import subprocess
import sys

import rules_code
import rules_tree
from rules import RULES, Tree

assert rules_code and rules_tree  # Imported for the rules they declare.

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def list_files():
    """Tracked and new files; all that git does not ignore."""
    command = ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        output = subprocess.run(command, check=True, capture_output=True).stdout
        return sorted(set(output.decode().split("\0")) - {""})
    except (OSError, subprocess.CalledProcessError):
        return sorted(walk_files())


def walk_files():
    """For an unpacked archive, which has no git."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [f for f in folders if not f.startswith((".git", "build", "out"))]
        for name in names:
            yield os.path.relpath(os.path.join(folder, name), ROOT)


def load_tree():
    texts = {}
    for path in list_files():
        try:
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                texts[path] = file.read()
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue  # Binary, deleted but not yet committed, or a submodule.
    return Tree(texts)


def self_test():
    """Every rule must catch each of its bad trees and pass each good one."""
    faults = 0
    for rule in RULES:
        if not rule.bad:
            print(f"lint self-test: {rule.name} has no bad example")
            faults += 1
        for number, texts in enumerate(rule.bad):
            if not list(rule.check(Tree(texts))):
                print(f"lint self-test: {rule.name} misses bad example {number}")
                faults += 1
        for number, texts in enumerate(rule.good):
            for path, line, message in rule.check(Tree(texts)):
                print(f"lint self-test: {rule.name} rejects good example {number}: "
                      f"{path}:{line}: {message}")
                faults += 1
    examples = sum(len(rule.bad) + len(rule.good) for rule in RULES)
    print(f"lint self-test: {len(RULES)} rules, {examples} examples, {faults} faults")
    return faults


def main(arguments):
    if "--list" in arguments:
        for rule in RULES:
            print(f"{rule.name:20} {rule.check.__doc__.splitlines()[0]}")
        return 0
    if self_test():
        return 1
    if "--self-test" in arguments:
        return 0
    tree = load_tree()
    findings = 0
    for rule in RULES:
        for path, line, message in rule.check(tree):
            print(f"{path}:{line}: {message} [{rule.name}]")
            findings += 1
    print(f"lint: {len(tree.texts)} files, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
