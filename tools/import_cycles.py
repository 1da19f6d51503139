#!/usr/bin/env python3
"""Finds import cycles between the files of a crate. Prints each cycle with its imports; exit code 1 if there is one.

    python3 tools/import_cycles.py [crates/zoo ...]

A file imports another file if it names an item that is defined there, directly or through re-exports. The script
ignores code under `#[cfg(test)]`, `mod` declarations, and `pub use` of items that the file itself does not use. Paths
are matched as text, so imports inside macro expansions are not found.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

# Comments, raw strings, strings and character literals.
COMMENT_OR_LITERAL = re.compile(
    r"""//[^\n]*|/\*.*?\*/|\bb?r(#*)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\u\{[^}]*\}|\\.|[^\\'])'""", re.DOTALL
)
TEST_ATTRIBUTE = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]")
USE = re.compile(r"(pub(?:\([^)]*\))?\s+)?\buse\s+([^;]+);")
MOD = re.compile(r"\bmod\s+\w+;")
PATH = re.compile(r"\b[a-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)+")


def strip_source(source):
    """Removes comments, literals and items under `#[cfg(test)]`."""
    code = COMMENT_OR_LITERAL.sub('""', source)
    while match := TEST_ATTRIBUTE.search(code):
        depth, end = 0, match.end()
        while end < len(code):
            char = code[end]
            depth += (char in "([{") - (char in ")]}")
            end += 1
            if depth == 0 and char in ";}":
                break
        code = code[: match.start()] + code[end:]
    return code


def expand_use(tree):
    """Returns the paths of a `use` tree with their local names.

    `a::{b, c as d}` gives `a::b` with name `b` and `a::c` with name `d`.
    """
    tree = tree.strip()
    if "{" not in tree:
        path, _, name = tree.partition(" as ")
        parts = [part.strip() for part in path.split("::")]
        parts = parts[:-1] if parts[-1] == "self" else parts
        return [(parts, name.strip() or parts[-1])]
    prefix, body = tree[: tree.index("{")], tree[tree.index("{") + 1 : tree.rindex("}")]
    branches, depth = [""], 0
    for char in body:
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 0:
            branches.append("")
        else:
            branches[-1] += char
    return [path for branch in branches if branch.strip() for path in expand_use(prefix + branch.strip())]


class Crate:
    """Files of a crate, keyed by module path, such as `("registry", "table")`."""

    def __init__(self, folder):
        self.name = "calorimeter_" + folder.name
        self.bodies, self.uses, self.exports = {}, {}, {}
        for file in sorted((folder / "src").rglob("*.rs")):
            module = file.relative_to(folder / "src").with_suffix("").parts
            if module == ("main",):
                continue
            module = module[:-1] if module[-1] in ("mod", "lib") else module
            code = strip_source(file.read_text())
            uses = [(pub, use) for pub, tree in USE.findall(code) for use in expand_use(" ".join(tree.split()))]
            self.bodies[module] = MOD.sub("", USE.sub("", code))
            self.uses[module] = [use for pub, use in uses if not pub]
            self.exports[module] = [use for pub, use in uses if pub]

    def absolute_path(self, module, path):
        """Returns a path relative to the crate root, or None if it leads out of the crate."""
        first, *rest = path
        if first in ("crate", self.name):
            return tuple(rest)
        if first == "self":
            return module + tuple(rest)
        if first == "super":
            return self.absolute_path(module[:-1], rest if rest[:1] == ["super"] else ["self", *rest])
        return module + tuple(path) if module + (first,) in self.bodies else None

    def defining_module(self, module, path, max_depth=8):
        """Returns the module that defines an item, or None for a module itself and for items of other crates.

        Re-exports are followed up to `max_depth` times.
        """
        path = self.absolute_path(module, path)
        if path is None or max_depth == 0:
            return None
        length = next(length for length in range(len(path), -1, -1) if path[:length] in self.bodies)
        module, rest = path[:length], list(path[length:])
        if not rest:
            return None
        for export, name in self.exports[module]:
            if name == rest[0]:
                return self.defining_module(module, export + rest[1:], max_depth - 1)
        return module

    def imports(self):
        """Returns for each module the modules that it imports, each with the paths of its items."""
        graph = {module: defaultdict(set) for module in self.bodies}
        for module, uses in self.uses.items():
            body = self.bodies[module]
            uses = uses + [use for use in self.exports[module] if re.search(rf"\b{use[1]}\b", body)]
            path_by_name = {name: path for path, name in uses}
            paths = [path for path, _ in uses]
            for text in PATH.findall(body):
                first, *rest = re.split(r"\s*::\s*", text)
                paths.append(path_by_name.get(first, [first]) + rest)
            for path in paths:
                imported = self.defining_module(module, path)
                if imported is not None and imported != module:
                    graph[module][imported].add("::".join(path))
        return graph


def find_cycles(graph):
    """Returns the groups of modules that all reach each other, smallest first."""
    reachable = {}
    for start in graph:
        reachable[start], pending = set(), [start]
        while pending:
            for module in graph[pending.pop()]:
                if module not in reachable[start]:
                    reachable[start].add(module)
                    pending.append(module)
    groups = {frozenset(other for other in reachable[module] if module in reachable[other]) for module in graph}
    return sorted((sorted(group) for group in groups if group), key=len)


def main():
    folders = [Path(folder) for folder in sys.argv[1:]]
    folders = folders or sorted(file.parent for file in Path(__file__).parents[1].glob("crates/*/Cargo.toml"))
    failed = False
    for folder in folders:
        graph = Crate(folder).imports()
        for group in find_cycles(graph):
            failed = True
            print(f"{folder.name}: {len(group)} files import each other in a cycle")
            for importer in group:
                for imported in group:
                    if paths := graph[importer].get(imported):
                        names = ["/".join(module) or "lib" for module in (importer, imported)]
                        print(f"    {names[0]} -> {names[1]}: {', '.join(sorted(paths))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
