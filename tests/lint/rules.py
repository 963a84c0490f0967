"""What a lint rule is, and the helpers that rules share.

A rule is a generator over a Tree that yields (path, line, message). It is
declared with examples: trees in which it must find something, and trees in
which it must find nothing. lint.py tries them before every run.
"""

import collections
import re

Rule = collections.namedtuple("Rule", "name check bad good")
RULES = []

CODE = (".h", ".cpp", ".cu", ".cuh", ".inc")


class Tree:
    """Texts by path relative to the root of the checkout."""

    def __init__(self, texts):
        self.texts = texts

    def under(self, folders, suffixes=CODE):
        """(path, text) of the files below any of `folders` with a suffix."""
        for path, text in sorted(self.texts.items()):
            if path.endswith(tuple(suffixes)) and path.startswith(tuple(folders)):
                yield path, text


def rule(name, bad, good=()):
    """Declares a rule; bad and good are lists of {path: text}."""

    def declare(check):
        RULES.append(Rule(name, check, list(bad), list(good)))
        return check

    return declare


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'', re.DOTALL
)


def without_comments(text):
    """The text with comments blanked, so that offsets and lines stay."""

    def blank(match):
        token = match.group(0)
        return re.sub(r"[^\n]", " ", token) if token.startswith("/") else token

    return TOKEN.sub(blank, text)


def without_strings(text):
    """As without_comments, and the contents of string literals blanked too."""

    def blank(match):
        token = match.group(0)
        return token[0] + re.sub(r"[^\n]", " ", token[1:-1]) + token[-1]

    return TOKEN.sub(blank, without_comments(text))


def findings(path, text, pattern, message, flags=0):
    """One finding for each match of the pattern."""
    for match in re.finditer(pattern, text, flags | re.MULTILINE):
        yield path, line_of(text, match.start()), message
