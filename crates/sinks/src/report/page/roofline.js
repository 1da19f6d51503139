// Roofline plot of all cases.
function roofline() {
  const rate = (row) => get("tflops", row) * 1e12;
  figure({
    id: "roofline", title: "Roofline",
    lead: "Operations per second over operations per byte of minimum traffic. The dashed lines are measured peaks of the machine; the record of a case holds its own.",
    has: (row) => isOk(row) && get("tflops", row) > 0 && get("intensity", row) !== null,
    draw: (rows, place, width) => {
      const series = seriesOf(rows, (row) => ({
        x: get("intensity", row), y: rate(row), row,
        tip: () => [get("id", row), operations(rate(row)), get("roofline_percent", row) === null ? "peak unknown" : `${percent(get("roofline_percent", row))} of ${get("roofline_bound", row)}`],
      }));
      const peaks = (name, scale) => distinct(rows, (row) => get(name, row)).sort((a, b) => b - a).slice(0, 4).map((peak) => peak * scale);
      const compute = peaks("peak_tflops", 1e12), memory = peaks("peak_gbps", 1e9);
      const xs = series.flatMap(({ points }) => points.map(({ x }) => x));
      // The ridge point must be visible.
      if (compute.length && memory.length) xs.push(compute[0] / memory[0]);
      const ys = series.flatMap(({ points }) => points.map(({ y }) => y));
      const [lowX, highX] = range(xs, true);
      chart((place.replaceChildren(), place), width, {
        title: "Roofline", series, height: 420,
        x: { label: "operations per byte", format: "intensity", log: true, range: [lowX, highX] },
        y: { label: "operations per second", format: "operations", log: true, range: range([...ys, ...compute], true) },
        under: ({ inner, X, Y, xs, ys, left, right }) => {
          const highest = compute[0] ?? ys[1];
          for (const peak of memory) {
            const from = Math.max(xs[0], ys[0] / peak), to = Math.min(xs[1], highest / peak);
            if (from >= to) continue;
            inner.append(shape("path", { class: "roof", d: `M${X(from)} ${Y(from * peak)}L${X(to)} ${Y(to * peak)}` }));
            const name = FORMATS.gbps(peak / 1e9), at = Math.sqrt(from * to);
            inner.append(shape("text", { class: "name over", x: Math.max(X(at) - 8, left + widthOf(name)), y: Y(at * peak) - 6, "text-anchor": "end" }, name));
          }
          for (const peak of compute) {
            const from = memory.length ? Math.max(xs[0], peak / memory[0]) : xs[0];
            inner.append(shape("path", { class: "roof", d: `M${X(from)} ${Y(peak)}H${right}` }));
            inner.append(shape("text", { class: "name over", x: right - 2, y: Y(peak) - 6, "text-anchor": "end" }, operations(peak)));
          }
        },
      });
      if (compute.length + memory.length === 0) place.append(element("p", { class: "faint" }, "The records have no peaks of this machine."));
    },
  });
}
