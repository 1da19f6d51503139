#!/usr/bin/env python3
"""Prints the records of a run as a Markdown table: a row per workload, size and recipe, a column per implementation.

    calorimeter run configs/results/gemm.yml --python torch --format jsonl | python3 tools/results_table.py

Times are medians in microseconds. The last columns contain the time of `native` divided by the time of each other
implementation. A case without a time shows its status; the reasons are printed below the table.
"""

import json
import sys

RATIO_OF = "native"


def label(record):
    """Returns the cells that name a row."""
    size = " x ".join(str(value) for value in record["shape"].values())
    recipe = "+".join(filter(None, [record["recipe"], record.get("sparsity")]))
    return record["workload"], size, record["dtype"], recipe


def order(record):
    """Returns the sort key of a record; runs measure in random order."""
    recipe = record["recipe"], record.get("sparsity") or ""
    return record["workload"], record["dtype"], list(record["shape"].values()), recipe != ("baseline", ""), recipe


def cell(record):
    """Returns the time of a record in microseconds, or its status."""
    if record is None:
        return ""
    time_us = microseconds(record)
    return record["status"] if time_us is None else f"{time_us:.4g}" if time_us < 1000 else f"{time_us:.0f}"


def microseconds(record):
    return record["time_ns"]["median"] / 1e3 if record and record.get("time_ns") else None


def ratio(record, other):
    """Returns the ratio of two times as text."""
    times = microseconds(record), microseconds(other)
    return f"{times[0] / times[1]:.2f}" if all(times) else ""


def main():
    records = sorted(map(json.loads, sys.stdin), key=order)
    rows = {}
    for record in records:
        rows.setdefault(label(record), {})[record["implementation"]] = record
    names = sorted({record["implementation"] for record in records}, key=lambda name: (name != RATIO_OF, name))
    compared = [name for name in names if name != RATIO_OF] if RATIO_OF in names else []
    header = ["workload", "size", "dtype", "recipe", *names, *(f"{RATIO_OF} / {name}" for name in compared)]
    print(f"| {' | '.join(header)} |\n|{'---|' * len(header)}")
    for row, cases in rows.items():
        times = [cell(cases.get(name)) for name in names]
        ratios = [ratio(cases.get(RATIO_OF), cases.get(name)) for name in compared]
        print(f"| {' | '.join([*row, *times, *ratios])} |")
    untimed = [record for record in records if microseconds(record) is None]
    reasons = (f"{one['implementation']}, {one['recipe']}: {one.get('reason', 'without a reason')}" for one in untimed)
    for reason in dict.fromkeys(reasons):
        print(f"\n{reason}")


if __name__ == "__main__":
    main()
