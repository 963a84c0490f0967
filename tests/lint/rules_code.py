"""Rules about what C++ and ODS texts say."""

import re

from rules import CODE, findings, line_of, rule, without_comments, without_strings

COMPILER = ("lib/", "dialects/", "include/")
GENERAL = tuple(
    root + folder + "/"
    for root in ("lib/", "include/parc/")
    for folder in ("Analysis", "Transforms", "Pipeline", "Target", "Conversion", "Driver")
)


@rule(
    "no-nn-op",
    bad=[
        {"lib/Transforms/A.cpp": "if (isa<nn::LinearOp>(op))\n"},
        {"lib/Target/A.cpp": 'if (name == "nn.linear")\n'},
        {"include/parc/Analysis/A.h": "nn::RopeOp op;\n"},
        {"lib/Pipeline/A.cpp": "using namespace mlir::nn;\n"},
        {"lib/Analysis/A.cpp": 'op->getName().getDialectNamespace() == "nn"\n'},
    ],
    good=[
        {"lib/Transforms/A.cpp": "// like nn::LinearOp\nauto i = cast<FactorInterface>(op);\n"},
        {"lib/Import/A.cpp": "nn::LinearOp::create(b);\n"},
        {"lib/Driver/A.cpp": "manager.addPass(nn::createDecompose());\n"},
    ],
)
def no_nn_op(tree):
    """The general parts of the compiler name no op of the nn dialect (its passes they may)."""
    for path, text in tree.under(GENERAL):
        code = without_comments(text)
        message = "names an nn op; ask an interface instead"
        pattern = r'\bnn::(?!create)\w|"nn[."]|\bnamespace\s+(?:\w+::)*nn\b'
        yield from findings(path, code, pattern, message)


EMIT = re.compile(r"\bemit(?:Op)?(?:Error|Warning|Remark)\s*\(|\bnotifyMatchFailure\s*\(")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def statement_end(code, start):
    """Offset of the `;` that ends the statement, strings skipped."""
    blanked = without_strings(code[start : start + 4000])
    end = blanked.find(";")
    return start + (end if end >= 0 else len(blanked))


@rule(
    "diagnostic-style",
    bad=[
        {"lib/A.cpp": 'return emitError(loc) << "Expected a mesh";\n'},
        {"lib/A.cpp": 'return op.emitOpError("expected a mesh.");\n'},
        {"dialects/NN/A.cpp": 'emitWarning(loc, "uneven heads " + n + " on tp.");\n'},
    ],
    good=[
        {"lib/A.cpp": 'return emitError(loc) << "expected a mesh, got " << n;\n'},
        {"lib/A.cpp": 'op.emitOpError() << "expected tp=" << n << "; see Z_p...";\n'},
        {"lib/A.cpp": 'emitError(loc) << "RMS norm expects a row";\nfoo("Big.");\n'},
    ],
)
def diagnostic_style(tree):
    """A diagnostic is a lower-case fragment without a full stop."""
    for path, text in tree.under(COMPILER + ("tools/",)):
        code = without_comments(text)
        for match in EMIT.finditer(code):
            statement = code[match.start() : statement_end(code, match.end())]
            literals = list(LITERAL.finditer(statement))
            if not literals:
                continue
            line = line_of(code, match.start())
            if re.match(r"[A-Z](?:[a-z]| )", literals[0].group(1)):
                yield path, line, "a diagnostic begins with a lower-case letter"
            tail = statement[literals[-1].end() :].strip(" \n)")
            last = literals[-1].group(1)
            if not tail and last.endswith(".") and not last.endswith(".."):
                yield path, line, "a diagnostic does not end in a full stop"


@rule(
    "generated-constructor",
    bad=[{"include/parc/Transforms/Passes.td": 'let constructor = "make()";\n'}],
    good=[{"include/parc/Transforms/Passes.td": "let summary = [{constructor}];\n"}],
)
def generated_constructor(tree):
    """Pass constructors are generated, never named in ODS."""
    for path, text in tree.under(COMPILER, (".td",)):
        message = "leave the constructor to ODS"
        yield from findings(path, without_comments(text), r"\blet\s+constructor\b", message)


@rule(
    "no-global-flag",
    bad=[
        {"lib/A.cpp": 'static cl::opt<bool> fast("fast");\n'},
        {"dialects/NN/A.cpp": 'static llvm::cl::list<int> n("n");\n'},
        {"lib/A.cpp": 'llvm::cl::opt<bool> fast("fast");\n'},
    ],
    good=[
        {"tools/parc/A.cpp": 'static cl::opt<bool> fast("fast");\n'},
        {"lib/A.cpp": "void declare() {\n  cl::opt<bool> fast;\n}\n"},
    ],
)
def no_global_flag(tree):
    """Libraries have no command line flags of the whole process."""
    pattern = r"^\s*static\s+(?:llvm::)?cl::|^(?:llvm::)?cl::(?:opt|list|bits|alias)\b"
    for path, text in tree.under(COMPILER):
        message = "options belong to a pass or to the driver"
        yield from findings(path, without_strings(text), pattern, message)


@rule(
    "no-swallowed-failure",
    bad=[
        {"lib/A.cpp": "(void)applyPatternsGreedily(op, std::move(p));\n"},
        {"lib/A.cpp": "(void) applyPartialConversion(op, t, p);\n"},
    ],
    good=[{"lib/A.cpp": "if (failed(applyPatternsGreedily(op, p)))\n"}],
)
def no_swallowed_failure(tree):
    """A pattern driver's failure is never discarded."""
    pattern = r"\(void\)\s*(?:mlir::)?apply\w*"
    for path, text in tree.under(COMPILER + ("tools/",)):
        message = "handle the failure; it means that the rewrite did not finish"
        yield from findings(path, without_strings(text), pattern, message)


UNORDERED = re.compile(
    r"\b(?:DenseMap|SmallDenseMap|DenseSet|SmallDenseSet|SmallPtrSet|StringMap|StringSet"
    r"|unordered_map|unordered_set)\s*<"
)


def unordered_names(code):
    """Names of variables, members and parameters of an unordered type."""
    names = set(re.findall(r"\bStringSet<>\s*&?\s*(\w+)", code))
    for match in UNORDERED.finditer(code):
        depth, position = 1, match.end()
        while depth and position < len(code):
            depth += {"<": 1, ">": -1}.get(code[position], 0)
            position += 1
        name = re.match(r"\s*[&*]?\s*(\w+)", code[position:])
        if name:
            names.add(name.group(1))
    return names - {"const", "operator"}


@rule(
    "no-unordered-loop",
    bad=[
        {"lib/Target/A.cpp": "DenseMap<Value, std::pair<int, int>> m;\nfor (auto &e : m)\n"},
        {
            "include/parc/Target/A.h": "struct A { std::unordered_map<int, int> names; };\n",
            "lib/Target/A.cpp": "for (auto [k, v] : this->names)\n",
        },
        {"lib/Pipeline/A.cpp": "llvm::StringMap<int> m;\nstd::copy(m.begin(), m.end(), o);\n"},
    ],
    good=[
        {"lib/Target/A.cpp": "llvm::MapVector<Value, int> m;\nfor (auto &e : m)\n"},
        {"lib/Target/A.cpp": "DenseMap<Value, int> m;\nm.find(v);\nfor (auto &e : list)\n"},
        {"lib/A.cpp": "DenseSet<int> s;\nfor (int i : s) // order-free: a sum\n"},
    ],
)
def no_unordered_loop(tree):
    """Nothing walks an unordered container, unless it says `order-free:` and why."""
    headers = {}
    for path, text in tree.under(("lib/", "dialects/", "tools/", "include/", "runtime/")):
        stem = path.rsplit("/", 1)[-1].rsplit(".", 1)[0]
        headers.setdefault(stem, set()).update(unordered_names(without_strings(text)))
    for path, text in tree.under(("lib/", "dialects/", "tools/", "include/", "runtime/")):
        names = headers[path.rsplit("/", 1)[-1].rsplit(".", 1)[0]]
        if not names:
            continue
        any_name = "|".join(sorted(names))
        pattern = (
            rf"\bfor\s*\([^;{{]*?[^:]:\s*(?:\w+(?:\.|->))*(?:{any_name})\s*\)"
            rf"|\b(?:{any_name})(?:\.|->)begin\("
        )
        lines = text.split("\n")
        for found in findings(path, without_strings(text), pattern, "order is not defined here"):
            if not any("order-free:" in l for l in lines[max(0, found[1] - 2) : found[1]]):
                yield found


@rule(
    "ods-described",
    bad=[
        {"dialects/NN/NNOps.td": 'def NN_A : NN_Op<"a"> {\n  let summary = "an a";\n}\n'},
        {"dialects/NN/NNOps.td": 'def X : AttrDef<D, "X"> {\n  let description = [{ }];\n}\n'},
        {"include/parc/Transforms/Passes.td": 'def A : Pass<"a"> {\n  let summary = "alpha";\n'
                                              "  let description = [{Does.}];\n}\n"},
    ],
    good=[
        {"dialects/NN/NNOps.td": 'class NN_E<string m> : NN_Op<m> {\n  let description = [{E.}];\n'
                                 '}\ndef NN_A : NN_E<"a"> {\n  let summary = "an a";\n}\n'},
        {"dialects/NN/NNOps.td": 'def NN_A : NN_Op<"a"> {\n  let summary = "an a";\n'
                                 "  let description = [{An a.}];\n}\n"},
    ],
)
def ods_described(tree):
    """Ops and passes have a description, and no summary is one word."""
    for path, text in tree.under(COMPILER, (".td",)):
        code = without_comments(text)
        empty = r'\blet\s+(?:description|summary)\s*=\s*(?:""|\[\{\s*\}\])'
        yield from findings(path, code, empty, "empty description")
        word = r'\blet\s+summary\s*=\s*"\s*[\w-]+\s*"'
        yield from findings(path, code, word, "a summary of one word says nothing")
        yield from undescribed(path, code)


def undescribed(path, code):
    start = re.compile(r"^(def|class|multiclass)\s+(\w+)[^:{;]*(?::\s*(\w+))?", re.MULTILINE)
    entries = list(start.finditer(code))
    ends = [entry.start() for entry in entries[1:]] + [len(code)]
    described = {}
    for entry, end in zip(entries, ends):
        kind, name, base = entry.groups()
        has = bool(re.search(r"\blet\s+description\b", code[entry.start() : end]))
        described[name] = has or described.get(base, False)
        wants = base and (base == "Pass" or re.search(r"Op$", base) or base in described)
        is_op = wants and re.search(r'<\s*"', code[entry.start() : entry.end() + 40])
        if kind == "def" and is_op and not described[name]:
            yield path, line_of(code, entry.start()), f"'{name}' has no description"


@rule(
    "file-header",
    bad=[{"lib/A.cpp": "int x;\n"}, {"lib/A.h": "//===- A.h - a\n// nothing else\n"}],
    good=[{"lib/A.cpp": "//===- A.cpp - a\n// SPDX-License-Identifier: Apache-2.0\n"}],
)
def file_header(tree):
    """A source begins with its name, what it is, and its licence."""
    folders = COMPILER + ("tools/", "runtime/", "tests/unit/", "cmake/")
    for path, text in tree.under(folders, CODE + (".td",)):
        head = "\n".join(text.split("\n")[:12])
        if not head.startswith("//===-"):
            yield path, 1, "begins without the //===- line"
        elif "SPDX-License-Identifier: Apache-2.0" not in head:
            yield path, 1, "names no licence (SPDX-License-Identifier)"
