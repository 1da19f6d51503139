#!/usr/bin/env python3
"""Checks the links of the documentation, without a network: every relative link and anchor of a Markdown file resolves, every
page of the book is in SUMMARY.md once, links of the book stay inside the book, and no page has an include directive.

    python3 tools/check_book.py           exit code 1 if a check fails
"""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "docs/src"
LINK = re.compile(r"(?<!\\)\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)")
HEADING = re.compile(r"^(#{1,6}) +(.*?) *#*$")
ANCHOR = re.compile(r"<a (?:id|name)=\"([^\"]+)\"")
FENCE = re.compile(r" *(`{3,}|~{3,})")
MAX_HOW_TO_WORDS = 400


def prose(text):
    """Lines outside of code blocks; lines of code blocks are blank, so that line numbers stay."""
    fence = None
    for line in text.splitlines():
        found = FENCE.match(line)
        if fence is None and found:
            fence = found[1]
            yield ""
        elif fence is not None:
            if found and found[1].startswith(fence):
                fence = None
            yield ""
        else:
            yield line


def anchors(text):
    """Names of headings, as mdBook and GitHub form them, and of explicit anchors."""
    names, seen = set(), Counter()
    for line in prose(text):
        names.update(ANCHOR.findall(line))
        if found := HEADING.match(line):
            title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", found[2])
            name = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            names.add(f"{name}-{seen[name]}" if seen[name] else name)
            seen[name] += 1
    return names


def markdown_files():
    """Markdown files that git tracks, or would track."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [ROOT / name for name in names if (ROOT / name).exists()]


def check_links(path, text, problem):
    for number, line in enumerate(prose(text), 1):
        for target in LINK.findall(re.sub(r"`[^`]*`", "", line)):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            file = (path.parent / name).resolve() if name else path
            if not file.exists():
                problem(path, number, f"{target} does not exist")
            elif BOOK in path.parents and BOOK not in file.parents:
                problem(path, number, f"{target} leaves the book; use a URL of the repository")
            elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text(encoding="utf-8")):
                problem(path, number, f"{target} has no such heading or anchor")


def check_summary(problem):
    summary = BOOK / "SUMMARY.md"
    listed = Counter(LINK.findall(summary.read_text(encoding="utf-8")))
    for page in sorted(BOOK.rglob("*.md")):
        name = page.relative_to(BOOK).as_posix()
        if page != summary and listed[name] != 1:
            problem(page, 1, f"listed {listed[name]} times in SUMMARY.md")


def check_page(path, text, problem):
    if "{{#" in text:
        problem(path, 1, "has an include directive, which GitHub does not show; use a file marker (`calorimeter docs`)")
    words = len(" ".join(prose(text)).split())
    if path.parent.name == "how-to" and words > MAX_HOW_TO_WORDS:
        problem(path, 1, f"has {words} words outside of code, more than {MAX_HOW_TO_WORDS}")


def main():
    problems = []

    def problem(path, number, text):
        problems.append(f"{path.relative_to(ROOT)}:{number}: {text}")

    files = markdown_files()
    for path in files:
        text = path.read_text(encoding="utf-8")
        check_links(path, text, problem)
        if BOOK in path.parents:
            check_page(path, text, problem)
    check_summary(problem)
    print("\n".join([*problems, f"{len(files)} files, {len(problems)} problems"]))
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
