#!/usr/bin/env python3
"""Runs clang-tidy over the product's sources, those that changed since they passed.

A source passes once for its own text, the project's headers and generated code
that it read (the build knows), its flags, and the configuration. MLIR's headers
are parsed once, into a precompiled header of clang's own beside the build.
Usage: tidy.py --build DIR [--jobs N] [--all] [SOURCE ...]
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import shlex
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TIDY, CLANG = "clang-tidy-22", "clang++-22"
PCH_NAME = "cmake_pch.hxx"


def read(path):
    with open(path, "rb") as file:
        return file.read()


def in_project(path, build):
    ours = path.startswith(ROOT + os.sep) and not path.startswith(build + os.sep)
    tests = path.startswith(os.path.join(ROOT, "tests") + os.sep)
    return ours and not tests and path.endswith(".cpp")


def compile_flags(entry):
    """The command without launcher, compiler, input, output and g++'s own flags."""
    words = shlex.split(entry["command"])
    while words and os.path.basename(words[0]) == "ccache":
        words = words[1:]
    flags, skip = [], False
    for word in words[1:]:
        if skip:
            skip = False
        elif word in ("-o", "-MF", "-MT", "-include", "-x"):
            skip = True
        elif word not in ("-c", "-MD", "-Winvalid-pch", entry["file"]):
            flags.append(word)
    return flags + ["-Wno-everything"]


def uses_pch(entry):
    return PCH_NAME in entry.get("command", "")


def build_pch(entry, folder, version):
    """clang's precompiled header with the flags of the build's; its path."""
    text = os.path.join(ROOT, "cmake", "ParcPCH.h")
    flags = compile_flags(entry)
    digest = hashlib.sha256(repr((flags, version)).encode() + read(text)).hexdigest()[:16]
    path = os.path.join(folder, f"{digest}.pch")
    if not os.path.exists(path):
        temporary = f"{path}.{os.getpid()}"
        command = [CLANG, *flags, "-x", "c++-header", text, "-o", temporary]
        subprocess.run(command, check=True, cwd=entry["directory"])
        os.replace(temporary, path)
    return path


def dependencies(build):
    """For each object what it was compiled from, as ninja recorded it."""
    result = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, check=False)
    objects, current = {}, None
    for line in result.stdout.decode().splitlines():
        if line.startswith("    ") and current is not None:
            current.append(os.path.normpath(os.path.join(build, line.strip())))
        elif ": #deps" in line:
            current = objects.setdefault(line.split(": #deps")[0], [])
    return objects


def fingerprint(entry, objects, salt):
    """Digest of all that decides the result; None if the build does not know."""
    words = shlex.split(entry["command"])
    read_files = objects.get(words[words.index("-o") + 1])
    if read_files is None:
        return None
    digest = hashlib.sha256(salt)
    digest.update(repr(compile_flags(entry)).encode())
    for path in sorted(set(read_files) | {entry["file"]}):
        if path.startswith(ROOT + os.sep) and PCH_NAME not in path:
            try:
                digest.update(path.encode() + read(path))
            except FileNotFoundError:
                return None
    return digest.hexdigest()


def check(entry, pch):
    flags = compile_flags(entry)
    if pch and uses_pch(entry):
        flags = ["-include-pch", pch, *flags]
    folders = "include|dialects|lib|tools|runtime"
    command = [TIDY, "--quiet", f"--header-filter=^{ROOT}/({folders})/", entry["file"], "--", *flags]
    return subprocess.run(command, capture_output=True, cwd=entry["directory"], check=False)


def load(path):
    try:
        return json.loads(read(path))
    except (FileNotFoundError, ValueError):
        return {}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--all", action="store_true", help="forget what passed before")
    parser.add_argument("sources", nargs="*", help="only these")
    return parser.parse_args()


def main():
    args = arguments()
    build = os.path.realpath(args.build)
    folder = os.path.join(build, "tidy")
    os.makedirs(folder, exist_ok=True)
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout.decode()
    salt = version.encode() + read(os.path.join(ROOT, ".clang-tidy")) + read(__file__)

    entries = {}
    for entry in json.loads(read(os.path.join(build, "compile_commands.json"))):
        if in_project(entry["file"], build):
            entries.setdefault(entry["file"], entry)
    if args.sources:
        wanted = {os.path.realpath(source) for source in args.sources}
        entries = {file: entry for file, entry in entries.items() if file in wanted}
    record = os.path.join(folder, "passed.json")
    passed = {} if args.all else load(record)
    objects = dependencies(build)
    prints = {file: fingerprint(entry, objects, salt) for file, entry in entries.items()}
    todo = [f for f in sorted(entries) if prints[f] is None or passed.get(f) != prints[f]]

    with_pch = [entries[f] for f in todo if uses_pch(entries[f])]
    pch = build_pch(with_pch[0], folder, version) if with_pch else None
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for file, result in zip(todo, pool.map(lambda f: check(entries[f], pch), todo)):
            if result.returncode == 0:
                passed[file] = prints[file]
                continue
            failed += 1
            passed.pop(file, None)
            sys.stdout.write(result.stdout.decode().replace(ROOT + os.sep, ""))
            if not result.stdout:
                sys.stdout.write(result.stderr.decode())
    with open(record, "w", encoding="utf-8") as file:
        json.dump({f: p for f, p in passed.items() if os.path.exists(f)}, file, indent=1)
    print(f"tidy: {len(todo)} checked, {len(entries) - len(todo)} unchanged, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
