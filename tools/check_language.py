#!/usr/bin/env python3
"""Checks the language of code and documentation against the limits below.

    python3 tools/check_language.py           prints the table; exit code 1 if a limit is exceeded
    python3 tools/check_language.py --list    prints every place that counts, too

Limits: doc comments that open with a pronoun or interrogative, function names that are a bare preposition, participle or
pronoun, type names that are defined more than once, constants named MOST, LEAST or FEWEST, messages of the form "is no X",
and the words that the last table of docs/src/glossary.md replaces.
"""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GLOSSARY = ROOT / "docs/src/glossary.md"
LISTED = "--list" in sys.argv

OPENING = re.compile(
    r"(What|Whether|Where|Who|Whose|Whoever|Whatever|How|Which|That|Those|These|Its|One|So|It|They|Such|As|Nobody|Others)\b"
)
CONVERSIONS = {"of", "from", "with", "into"}
BARE = CONVERSIONS | set(
    "about above after ahead alike alone among apart around as aside at before behind below beside besides between beyond "
    "both but by down each elsewhere for forth here how in instead its itself like mine myself near nobody none noting off "
    "on once one onto other others out over own same seen since so some such than that their them then there these they "
    "this those through thus till to together told under until up upon what when where whether which who whole whom whose "
    "why within without asked begun bound brought called chosen come cut done drawn ended felt filled found given gone "
    "heard held kept known laid left lent lost made meant met mended missing named needed passed put read_as said sent "
    "shown sought spoken spoilt standing stored taken thought used wanted written".split()
)
SHOUTED = re.compile(r"\b(?:const|static)\s+((?:[A-Z0-9]+_)*(?:MOST|LEAST|FEWEST)(?:_[A-Z0-9]+)*)\b")
IS_NO = re.compile(r"(?<!there )\b(?:is|are) no (?!longer\b|more\b)[a-z]")
TYPE = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:struct|enum|trait|union|type)\s+([A-Z]\w*)")
FUNCTION = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:const\s+|async\s+|unsafe\s+|extern\s+\"C\"\s+)*fn\s+(\w+)")
IMPL = re.compile(r"^(\s*)(?:unsafe\s+)?(impl|trait|pub trait|pub\(crate\) trait)\b(.*)")
STRING = re.compile(r'"(?:\\.|[^"\\])*"')


def replaced_words():
    """The first column of the glossary's last table, as one pattern per row."""
    rows = GLOSSARY.read_text(encoding="utf-8").rsplit("\n| not ", 1)[1].splitlines()[2:]
    words = [row.split("|")[1].strip() for row in rows if row.startswith("|")]
    return re.compile(r"\b(?:" + "|".join(sorted(map(re.escape, words), key=len, reverse=True)) + r")\b", re.IGNORECASE)


def without_tests(lines):
    """Blanks the body of every item behind `#[cfg(test)]`, so that line numbers stay."""
    kept, skipping, depth, opened = [], False, 0, False
    for line in lines:
        if not skipping and re.match(r"\s*#\[cfg\((?:all\()?test\b", line):
            skipping, depth, opened = True, 0, False
            kept.append("")
            continue
        if skipping:
            code = STRING.sub('""', line.split("//")[0])
            depth += code.count("{") - code.count("}")
            opened |= "{" in code
            if (opened and depth <= 0) or (not opened and code.rstrip().endswith(";")):
                skipping = False
            kept.append("")
            continue
        kept.append(line)
    return kept


class Report:
    """Places that count against each limit."""

    def __init__(self):
        self.places = defaultdict(list)
        self.doc_comments = 0
        self.functions = 0
        self.types = defaultdict(list)

    def add(self, limit, place, text):
        self.places[limit].append(f"{place}: {text.strip()[:110]}")


def scan_doc_comments(report, name, lines):
    previous = ""
    for number, line in enumerate(lines, 1):
        found = re.match(r"\s*(///|//!)\s?(.*)", line)
        if found and previous != found[1]:
            report.doc_comments += 1
            if OPENING.match(found[2]):
                report.add("opening", f"{name}:{number}", found[2])
            if re.match(r"What\b", found[2]):
                report.add("what", f"{name}:{number}", found[2])
        previous = found[1] if found else ""


def scan_names(report, name, lines):
    of_trait = False
    for number, line in enumerate(without_tests(lines), 1):
        if found := IMPL.match(line):
            of_trait = found[2] == "impl" and re.search(r"\bFrom<|\bInto<", found[3]) is not None
        if found := FUNCTION.match(line):
            report.functions += 1
            if found[1] in BARE and not (of_trait and found[1] in CONVERSIONS):
                report.add("conversion" if found[1] in CONVERSIONS else "bare", f"{name}:{number}", found[1])
        if (found := TYPE.match(line)) and not line.startswith("        "):
            report.types[found[1]].append(f"{name}:{number}")


def scan_text(report, name, lines, words, is_prose):
    for number, line in enumerate(lines, 1):
        if found := SHOUTED.search(line):
            report.add("shouted", f"{name}:{number}", found[1])
        comment = line if is_prose else " ".join(re.findall(r"//.*$", STRING.sub('""', line)))
        messages = "" if is_prose or "alias =" in line else " ".join(STRING.findall(line))
        if IS_NO.search(messages):
            report.add("is no", f"{name}:{number}", line)
        if found := words.search(comment) or words.search(messages):
            report.add("word", f"{name}:{number}", f"{found[0]!r} in {line.strip()}")


def scan():
    report, words = Report(), replaced_words()
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    for name in tracked:
        path = ROOT / name
        is_code, is_prose = path.suffix in (".rs", ".cu", ".cuh"), path.suffix == ".md"
        if not (is_code or is_prose) or path == GLOSSARY or not path.exists():
            continue
        lines = path.read_text(encoding="utf-8").splitlines()
        if is_code:
            scan_doc_comments(report, name, lines)
        if path.suffix == ".rs" and "/src/" in name:
            scan_names(report, name, lines)
        scan_text(report, name, lines, words, is_prose)
    for name, places in report.types.items():
        if len(places) > 1:
            report.add("type", name, " ".join(places) if LISTED else "")
    return report


def main():
    report = scan()
    count = {limit: len(places) for limit, places in report.places.items()}
    share = lambda limit: 100 * count.get(limit, 0) / max(report.doc_comments, 1)
    table = [
        ("opening", "doc comments that open with a pronoun or interrogative, %", share("opening"), 4),
        ("what", "doc comments that open with What, %", share("what"), 0.5),
        ("bare", "functions named by a bare preposition, participle or pronoun", count.get("bare", 0), 0),
        ("conversion", "conversions and constructors named from, of, with, into", count.get("conversion", 0), 60),
        ("type", "type names defined more than once", count.get("type", 0), 50),
        ("shouted", "constants named MOST, LEAST or FEWEST", count.get("shouted", 0), 0),
        ("is no", 'messages of the form "is no X"', count.get("is no", 0), 0),
        ("word", "words that the glossary replaces", count.get("word", 0), 0),
    ]
    exceeded = []
    for limit, title, value, most in table:
        met = value < most or value == most == 0
        print(f"{'ok ' if met else 'NOT'} {value:8.1f} (limit {most}) {title}")
        if not met:
            exceeded.append(limit)
    print(f"{report.doc_comments} doc comments, {report.functions} functions, {len(report.types)} type names")
    for limit, *_ in table:
        if LISTED or limit in exceeded:
            for place in report.places.get(limit, [])[: None if LISTED else 20]:
                print(f"{limit}: {place}")
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
