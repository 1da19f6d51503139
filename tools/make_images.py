#!/usr/bin/env python3
"""Makes the pictures of the README from a real run.

    script -qc 'stty cols 100; calorimeter run FILE --out DIR' terminal.txt
    tools/make_images.py --terminal terminal.txt --run DIR --calorimeter target/release/calorimeter

`--terminal` names the recorded output of a terminal and writes docs/images/terminal.svg. `--run` names the folder of
the run and writes docs/images/report.png with Chromium.
"""

import argparse
import html
import pathlib
import re
import subprocess
import tempfile

IMAGES = pathlib.Path(__file__).parent.parent / "docs/images"
FONT_SIZE, LINE_HEIGHT, CHAR_WIDTH, MARGIN = 13, 18, 7.83, 14
REPORT_SIZE = "1200,760"
BACKGROUND, FOREGROUND = "#15181d", "#d6dae0"
# Faint, red, green and yellow: the colors of tables.
COLORS = {2: "#7f8792", 31: "#f2777a", 32: "#8fce8b", 33: "#e5c07b"}


def spans(line):
    """Splits a line with escape sequences into pairs of text and SVG attributes."""
    style = {}
    for text, codes in re.findall(r"([^\x1b]*)(?:\x1b\[([0-9;]*)m)?", line):
        if text:
            yield text, " ".join(f'{key}="{value}"' for key, value in style.items())
        for code in (int(code or 0) for code in codes.split(";")) if codes is not None else []:
            if code == 0:
                style = {}
            elif code == 1:
                style["font-weight"] = "bold"
            elif code in COLORS:
                style["fill"] = COLORS[code]


def terminal_svg(text):
    """Draws the text of a terminal without progress, notes and the lines of `script`."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-HJKSThl]", "", text)
    text = re.sub(r"\x1b\][^\x07]*\x07", "", text)
    # Text after a carriage return overwrites the progress.
    lines = [line.removesuffix("\r").rsplit("\r", 1)[-1] for line in text.split("\n")]
    lines = [line for line in lines if not line.startswith(("Script ", "wrote ", "note: "))]
    while lines and not lines[-1].strip():
        lines.pop()
    width = max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in lines) * CHAR_WIDTH + 2 * MARGIN
    height = len(lines) * LINE_HEIGHT + 2 * MARGIN
    rows = []
    for index, line in enumerate(lines):
        y = MARGIN + (index + 0.75) * LINE_HEIGHT
        parts = "".join(f"<tspan {style}>{html.escape(part)}</tspan>" for part, style in spans(line))
        rows.append(f'<text x="{MARGIN}" y="{y:.1f}" xml:space="preserve">{parts}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}">\n'
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>\n'
        f'<g font-family="ui-monospace,Menlo,Consolas,\'DejaVu Sans Mono\',monospace" font-size="{FONT_SIZE}" '
        f'fill="{FOREGROUND}">\n' + "\n".join(rows) + "\n</g>\n</svg>\n"
    )


def report_png(calorimeter, run):
    """Renders the top of the HTML report of a run in Chromium."""
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "report.html"
        subprocess.run([calorimeter, "report", run, "--output", page], check=True)
        output = IMAGES / "report.png"
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={REPORT_SIZE}", f"--screenshot={output}"]
        subprocess.run(["chromium", *options, page.as_uri()], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--terminal", type=pathlib.Path)
    parser.add_argument("--run", type=pathlib.Path)
    parser.add_argument("--calorimeter", default="target/release/calorimeter")
    arguments = parser.parse_args()
    IMAGES.mkdir(parents=True, exist_ok=True)
    if arguments.terminal:
        # Not `read_text`, which replaces carriage returns by line feeds.
        text = arguments.terminal.read_bytes().decode()
        (IMAGES / "terminal.svg").write_text(terminal_svg(text))
    if arguments.run:
        report_png(arguments.calorimeter, arguments.run)


if __name__ == "__main__":
    main()
