"""Rules about where things are, and what no file may hold."""

import re

from rules import CODE, findings, line_of, rule, without_comments

# This folder holds the bad examples that the rules below are tried on.
SELF = "tests/lint/"


@rule(
    "file-length",
    bad=[{"lib/A.cpp": "\n" * 801}, {"docs/a.md": "a\n" * 900}],
    good=[{"lib/A.cpp": "\n" * 800}, {"docs/examples/a/config.json": "\n" * 900}],
)
def file_length(tree):
    """No file is longer than 800 lines."""
    for path, text in sorted(tree.texts.items()):
        if not path.endswith((".json", ".csv")) and text.count("\n") > 800:
            yield path, 801, "longer than 800 lines"


INCLUDE = r'^[ \t]*#[ \t]*include[ \t]*[<"]'
LIBRARIES = "(?:Analysis|Conversion|Transforms|Pipeline|Planner|Simulator|Verify|Import|Target|Driver)"


@rule(
    "runtime-alone",
    bad=[
        {"runtime/lib/common/A.cpp": '#include "llvm/ADT/DenseMap.h"\n'},
        {"runtime/include/parc/runtime.h": "#  include <mlir/IR/Value.h>\n"},
        {"runtime/lib/host/A.cpp": '#include "parc/Analysis/A.h"\n'},
        {"runtime/CMakeLists.txt": "find_package(MLIR)\n"},
    ],
    good=[{"runtime/lib/common/A.cpp": '#include "parc/runtime.h"\n// not llvm/\n'}],
)
def runtime_alone(tree):
    """The runtime knows nothing of LLVM, MLIR, the dialects or the compiler."""
    pattern = INCLUDE + rf"(?:mlir|llvm|mlir-c|llvm-c|clang|NN|Parc|RT|dialects|parc/{LIBRARIES})/"
    for path, text in tree.under(("runtime/",)):
        yield from findings(path, text, pattern, "the runtime includes nothing of the compiler")
    for path, text in tree.under(("runtime/",), (".txt", ".cmake")):
        pattern = r"find_package\((?:MLIR|LLVM)\b"
        yield from findings(path, text, pattern, "the runtime builds without LLVM")


@rule(
    "include-direction",
    bad=[
        {"dialects/NN/NNOps.h": '#include "parc/Analysis/A.h"\n'},
        {"lib/Analysis/A.cpp": '#include "tools/parc/Flags.h"\n'},
        {"dialects/NN/NNOps.cpp": '#include "../../lib/A.h"\n'},
    ],
    good=[
        {"lib/Analysis/A.cpp": '#include "NN/NN.h"\n#include "parc/Analysis/A.h"\n'},
        {"dialects/NN/NNOps.cpp": '#include "NN/NN.h"\n#include "mlir/IR/Value.h"\n'},
    ],
)
def include_direction(tree):
    """runtime <- nothing; dialects <- MLIR; lib <- dialects; tools <- lib."""
    upward = rf"(?:parc/{LIBRARIES}/|(?:\.\./)+(?:lib|tools)/|lib/|tools/)"
    for path, text in tree.under(("dialects/",)):
        yield from findings(path, text, INCLUDE + upward, "a dialect includes only MLIR and dialects")
    for path, text in tree.under(("lib/", "include/")):
        pattern = INCLUDE + r"(?:\.\./)*tools/"
        yield from findings(path, text, pattern, "a library includes nothing of the tools")


@rule(
    "parc-and-rt",
    bad=[
        {"lib/Target/A.cpp": '#include "Parc/Parc.h"\n#include "RT/RT.h"\n'},
        {"dialects/RT/RT.h": '#include "Parc/Parc.h"\n'},
        {"lib/Target/A.cpp": '#include "dialects/RT/RT.h"\n#include "dialects/Parc/Parc.h"\n'},
    ],
    good=[
        {"lib/Conversion/A.cpp": '#include "Parc/Parc.h"\n#include "RT/RT.h"\n'},
        {"lib/Target/A.cpp": '#include "RT/RT.h"\n'},
        {"lib/Driver/InitAll.cpp": '#include "Parc/Parc.h"\n#include "RT/RT.h"\n'},
    ],
)
def parc_and_rt(tree):
    """Only conversions, and registration (InitAll*), see parc and rt together."""
    for path, text in tree.under(("lib/", "dialects/", "include/")):
        name = path.rsplit("/", 1)[-1]
        if path.startswith(("lib/Conversion/", "include/parc/Conversion/")):
            continue
        if name.startswith("InitAll"):
            continue
        seen = {}
        for dialect in ("Parc", "RT"):
            match = re.search(INCLUDE + rf"(?:dialects/)?{dialect}/", text, re.MULTILINE)
            if match:
                seen[dialect] = line_of(text, match.start())
            elif path.startswith(f"dialects/{dialect}/"):
                seen[dialect] = 1
        if len(seen) == 2:
            yield path, max(seen.values()), "only lib/Conversion sees parc and rt together"


def plain(name):
    return re.sub(r"[^a-z0-9]", "", name.lower())


@rule(
    "pass-has-files",
    bad=[
        {"include/parc/Transforms/Passes.td": 'def InsertMesh : Pass<"parc-insert-mesh"> {\n'},
        {
            "include/parc/Transforms/Passes.td": 'def InsertMesh : Pass<"parc-insert-mesh"> {\n',
            "lib/Transforms/InsertMesh.cpp": "",
        },
    ],
    good=[
        {
            "include/parc/Transforms/Passes.td": 'def InsertMesh : Pass<"parc-insert-mesh"> {\n',
            "lib/Transforms/InsertMesh.cpp": "",
            "tests/Transforms/insert-mesh.mlir": "",
        }
    ],
)
def pass_has_files(tree):
    """A pass has a .cpp of its name and a lit test of the same stem."""
    sources = {p[:-4] for p, _ in tree.under(("lib/", "dialects/"), (".cpp",))}
    tests = {plain(p.rsplit("/", 1)[-1][:-5]) for p, _ in tree.under(("tests/",), (".mlir",))}
    for path, text in tree.under(("include/parc/", "dialects/"), ("Passes.td",)):
        group = path.split("/")[-2]
        code = without_comments(text)
        for match in re.finditer(r'^def\s+(\w+)\s*:\s*Pass<\s*"([^"]*)"', code, re.MULTILINE):
            name, argument = re.sub(r"Pass$", "", match.group(1)), match.group(2)
            line = line_of(code, match.start())
            folder = f"dialects/{group}" if path.startswith("dialects/") else f"lib/{group}"
            if not {f"{folder}/{name}", f"{folder}/{name}Pass"} & sources:
                yield path, line, f"no {folder}/{name}.cpp"
            if not {plain(name), plain(argument), plain(argument.replace("parc-", ""))} & tests:
                yield path, line, f"no lit test with the stem '{argument.replace('parc-', '')}'"


@rule(
    "no-leftovers",
    bad=[{"lib/A.cpp": "// TODO: later\n"}, {"docs/a.md": "FIXME\n"}, {"run": "# XXX: hm\n"}],
    good=[{"lib/A.cpp": "// nothing left\n"}],
)
def no_leftovers(tree):
    """Work that is left goes to the tracker, not into the text."""
    for path, text in sorted(tree.texts.items()):
        if not path.startswith(SELF):
            yield from findings(path, text, r"\b(?:TODO|FIXME|XXX)\b", "left over")


@rule(
    "no-machine-path",
    bad=[
        {"lib/A.cpp": 'open("/tmp/x");\n'},
        {"docs/a.md": "see /home/someone/parc\n"},
        {"tests/a.mlir": "// RUN: parc-opt /root/a.mlir\n"},
    ],
    good=[{"docs/a.md": "see docs/home/page and /usr/local/cuda, a/tmp/b\n"}],
)
def no_machine_path(tree):
    """No path that exists on one machine only."""
    pattern = r"(?<![\w.~$)}%*-])/(?:work|root|home|Users|tmp)(?:/|\b)"
    for path, text in sorted(tree.texts.items()):
        if not path.startswith(SELF):
            yield from findings(path, text, pattern, "a path of one machine")


@rule(
    "no-model-name",
    bad=[
        {"lib/Transforms/A.cpp": "// as in Llama\n"},
        {"runtime/lib/A.cpp": 'if (kind == "gpt2")\n'},
        {"dialects/NN/NNOps.td": "Qwen3 norms q and k\n"},
    ],
    good=[
        {"lib/Import/A.cpp": '"LlamaForCausalLM"\n'},
        {"include/parc/Import/A.h": "// gpt2\n"},
        {"docs/a.md": "a small Llama\n"},
    ],
)
def no_model_name(tree):
    """Only the importer's descriptions know models."""
    pattern = r"llama|gpt|mistral|qwen|deepseek|mixtral"
    folders = ("lib/", "dialects/", "include/", "runtime/")
    for path, text in tree.under(folders, CODE + (".td", ".txt", ".md")):
        if not path.startswith(("lib/Import/", "include/parc/Import/")):
            message = "only lib/Import may name a model"
            yield from findings(path, text, pattern, message, re.IGNORECASE)


@rule(
    "explicit-sources",
    bad=[{"lib/A/CMakeLists.txt": "file(GLOB sources *.cpp)\n"}],
    good=[{"lib/A/CMakeLists.txt": "parc_add_library(A SOURCES A.cpp)\n"}],
)
def explicit_sources(tree):
    """Source lists are written out; a glob misses a new file until someone configures."""
    for path, text in sorted(tree.texts.items()):
        if path.endswith(("CMakeLists.txt", ".cmake")):
            yield from findings(path, text, r"\bfile\s*\(\s*GLOB", "list the sources")
