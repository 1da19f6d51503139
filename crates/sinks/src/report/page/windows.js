// Histogram of the window times of a case.
function windowHistogram(row) {
  const found = data.windows[row];
  if (!found) return null;
  const { lo, hi, counts, above } = found;
  const time = FORMATS.time, [width, height, bottom] = [560, 130, 104];
  const highest = Math.max(...counts);
  // All windows have the same time.
  const span = hi > lo ? hi - lo : 1, X = (value) => 8 + (width - 16) * Math.min(Math.max((value - lo) / span, 0), 1);
  const bin = span / counts.length;
  const drawn = shape("svg", { class: "chart histogram", viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `Histogram of ${count(sum(counts) + above)} window times from ${time(lo)} to ${time(hi)}` });
  const bars = counts.map((number, index) => {
    const top = bottom - (bottom - 22) * number / highest, left = X(lo + index * bin);
    const end = hi > lo ? X(lo + (index + 1) * bin) : left + 12;
    return shape("rect", { class: "bin", x: left, y: top, width: Math.max(end - left - 1, 1), height: bottom - top },
      shape("title", {}, `${time(lo + index * bin)} to ${time(lo + (index + 1) * bin)}: ${count(number)} windows`));
  });
  const [reported, low, high] = ["time_ns", "time_ns_lo", "time_ns_hi"].map((name) => get(name, row));
  const between = (value) => value !== null && value >= lo && value <= hi;
  if (low !== null && high !== null && high >= lo && low <= hi) drawn.append(shape("rect", { class: "band", x: X(low), y: 18, width: Math.max(X(high) - X(low), 1), height: bottom - 18 }));
  drawn.append(...bars, shape("line", { class: "grid", x1: 8, x2: width - 8, y1: bottom, y2: bottom }));
  if (between(reported)) {
    const anchor = X(reported) < 90 ? "start" : X(reported) > width - 90 ? "end" : "middle";
    drawn.append(shape("line", { class: "one", x1: X(reported), x2: X(reported), y1: 16, y2: bottom }),
      shape("text", { class: "name", x: X(reported), y: 12, "text-anchor": anchor }, `time ${time(reported)}`));
  }
  drawn.append(shape("text", { x: 8, y: bottom + 17 }, time(lo)), shape("text", { x: width - 8, y: bottom + 17, "text-anchor": "end" }, time(hi)));
  const outliers = above === 0 ? "" : above === 1 ? " 1 slower window is not shown." : ` ${count(above)} slower windows are not shown.`;
  const corrected = get("stopwatch", row) === "slope" ? ", without the fixed overhead of a window" : "";
  return element("figure", {}, drawn, element("figcaption", { class: "faint" },
    `Time per pass of ${count(sum(counts) + above)} windows. Line and band: reported time with its 95 % interval${corrected}.${outliers}`));
}
