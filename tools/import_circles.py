#!/usr/bin/env python3
"""Circles of imports between the files of a crate: prints each with its imports, and fails if there is one.

    python3 tools/import_circles.py [crates/zoo ...]

A file imports another if it names something that is defined there, whatever re-exports that passes through. What only
tests compile does not count, nor does a `mod`, nor a `pub use` of what the file itself has no need of. Paths are read as
text, so what a macro makes is not seen.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

# Comments, raw strings, strings and characters: none of them imports anything.
TEXT = re.compile(
    r"""//[^\n]*|/\*.*?\*/|\bb?r(#*)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\u\{[^}]*\}|\\.|[^\\'])'""", re.DOTALL
)
FOR_TESTS = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]")
USE = re.compile(r"(pub(?:\([^)]*\))?\s+)?\buse\s+([^;]+);")
MOD = re.compile(r"\bmod\s+\w+;")
PATH = re.compile(r"\b[a-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)+")


def code_of(source):
    """Without text, and without the items that only tests compile."""
    code = TEXT.sub('""', source)
    while found := FOR_TESTS.search(code):
        depth, end = 0, found.end()
        while end < len(code):
            letter = code[end]
            depth += (letter in "([{") - (letter in ")]}")
            end += 1
            if depth == 0 and letter in ";}":
                break
        code = code[: found.start()] + code[end:]
    return code


def expanded(tree):
    """What a `use` imports, `a::{b, c as d}`: each path with the name that it gets, `a::b` as `b` and `a::c` as `d`."""
    tree = tree.strip()
    if "{" not in tree:
        path, _, name = tree.partition(" as ")
        parts = [part.strip() for part in path.split("::")]
        parts = parts[:-1] if parts[-1] == "self" else parts
        return [(parts, name.strip() or parts[-1])]
    before, inside = tree[: tree.index("{")], tree[tree.index("{") + 1 : tree.rindex("}")]
    branches, depth = [""], 0
    for letter in inside:
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            branches.append("")
        else:
            branches[-1] += letter
    return [found for branch in branches if branch.strip() for found in expanded(before + branch.strip())]


class Crate:
    """The files of a crate by their modules: `("registry", "table")`."""

    def __init__(self, folder):
        self.name = "calorimeter_" + folder.name
        self.bodies, self.uses, self.exports = {}, {}, {}
        for file in sorted((folder / "src").rglob("*.rs")):
            module = file.relative_to(folder / "src").with_suffix("").parts
            if module == ("main",):
                continue
            module = module[:-1] if module[-1] in ("mod", "lib") else module
            code = code_of(file.read_text())
            found = [(pub, use) for pub, tree in USE.findall(code) for use in expanded(" ".join(tree.split()))]
            self.bodies[module] = MOD.sub("", USE.sub("", code))
            self.uses[module] = [use for pub, use in found if not pub]
            self.exports[module] = [use for pub, use in found if pub]

    def absolute(self, module, path):
        """A path from the root of the crate, or nothing if it leads out of it."""
        first, *rest = path
        if first in ("crate", self.name):
            return tuple(rest)
        if first == "self":
            return module + tuple(rest)
        if first == "super":
            return self.absolute(module[:-1], rest if rest[:1] == ["super"] else ["self", *rest])
        return module + tuple(path) if module + (first,) in self.bodies else None

    def defining(self, module, path, steps=8):
        """The file that defines what a path names, or nothing for a folder and for what is not of this crate."""
        path = self.absolute(module, path)
        if path is None or steps == 0:
            return None
        length = next(length for length in range(len(path), -1, -1) if path[:length] in self.bodies)
        module, rest = path[:length], list(path[length:])
        if not rest:
            return None
        for export, name in self.exports[module]:
            if name == rest[0]:
                return self.defining(module, export + rest[1:], steps - 1)
        return module

    def imports(self):
        """For each file, the files that it imports, each with the paths by which it does."""
        graph = {module: defaultdict(set) for module in self.bodies}
        for module, uses in self.uses.items():
            body = self.bodies[module]
            uses = uses + [use for use in self.exports[module] if re.search(rf"\b{use[1]}\b", body)]
            short = {name: path for path, name in uses}
            paths = [path for path, _ in uses]
            for written in PATH.findall(body):
                first, *rest = re.split(r"\s*::\s*", written)
                paths.append(short.get(first, [first]) + rest)
            for path in paths:
                other = self.defining(module, path)
                if other is not None and other != module:
                    graph[module][other].add("::".join(path))
        return graph


def circles(graph):
    """Groups of files of which each leads to every other, the smallest first."""
    reached = {}
    for start in graph:
        reached[start], waiting = set(), [start]
        while waiting:
            for other in graph[waiting.pop()]:
                if other not in reached[start]:
                    reached[start].add(other)
                    waiting.append(other)
    groups = {frozenset(other for other in reached[one] if one in reached[other]) for one in graph}
    return sorted((sorted(group) for group in groups if group), key=len)


def main():
    folders = [Path(folder) for folder in sys.argv[1:]]
    folders = folders or sorted(file.parent for file in Path(__file__).parents[1].glob("crates/*/Cargo.toml"))
    failed = False
    for folder in folders:
        graph = Crate(folder).imports()
        for group in circles(graph):
            failed = True
            print(f"{folder.name}: {len(group)} files import each other in a circle")
            for one in group:
                for other in group:
                    if paths := graph[one].get(other):
                        names = ["/".join(module) or "lib" for module in (one, other)]
                        print(f"    {names[0]} -> {names[1]}: {', '.join(sorted(paths))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
