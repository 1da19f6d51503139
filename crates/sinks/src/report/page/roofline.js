// Roofline plot of all cases.
function roofline() {
  const rate = (row) => get("tflops", row) * 1e12;
  figure({
    id: "roofline", title: "Roofline",
    lead: "Operations per second over operations per byte of minimum traffic. The dashed lines are measured peaks of the device: one per dtype, and the bandwidths of memory and cache.",
    has: (row) => isOk(row) && get("tflops", row) > 0 && get("intensity", row) !== null,
    draw: (rows, place, width) => {
      const series = seriesOf(rows, (row) => ({
        x: get("intensity", row), y: rate(row), row,
        tip: () => [get("id", row), operations(rate(row)), get("roofline_percent", row) === null ? "peak unknown" : `${percent(get("roofline_percent", row))} of the ${joined([get("roofline_bound", row), get("roofline_bound", row) === "compute" ? get("peak_dtype", row) : null], " ")} peak`],
      }));
      const compute = roofs(rows, "peak_tflops", 1e12, (row) => get("peak_dtype", row) ?? "compute", "");
      const memory = roofs(rows, "peak_gbps", 1e9, (row) => get("roofline_bound", row) === "compute" ? "bandwidth" : get("roofline_bound", row), "bandwidth");
      const xs = series.flatMap(({ points }) => points.map(({ x }) => x));
      // The ridge point must be visible.
      if (compute.length && memory.length) xs.push(compute[0].peak / memory[0].peak);
      const ys = series.flatMap(({ points }) => points.map(({ y }) => y));
      const [lowX, highX] = range(xs, true);
      chart((place.replaceChildren(), place), width, {
        title: "Roofline", series, height: 420,
        x: { label: "operations per byte", format: "intensity", log: true, range: [lowX, highX] },
        y: { label: "operations per second", format: "operations", log: true, range: range([...ys, ...compute.map(({ peak }) => peak)], true) },
        under: ({ inner, X, Y, xs, ys, left, right }) => {
          const highest = compute[0]?.peak ?? ys[1];
          const flats = compute.map(({ name, peak }) => {
            const from = memory.length ? Math.max(xs[0], peak / memory[0].peak) : xs[0];
            return { name: `${name}: ${operations(peak)}`, line: [[X(from), Y(peak)], [right, Y(peak)]] };
          });
          const slopes = memory.map(({ name, peak }) => {
            const from = Math.max(xs[0], ys[0] / peak), to = Math.min(xs[1], highest / peak);
            return from < to ? { name: `${name}: ${FORMATS.gbps(peak / 1e9)}`, line: [[X(from), Y(from * peak)], [X(to), Y(to * peak)]] } : null;
          }).filter((slope) => slope !== null);
          const points = series.flatMap(({ points }) => points.map(({ x, y }) => [X(x), Y(y)]));
          const label = labelPlacer([...flats, ...slopes].map(({ line }) => line), points, left);
          for (const { line } of [...flats, ...slopes]) inner.append(shape("path", { class: "roof", d: `M${line[0]}L${line[1]}` }));
          return () => {
            for (const { name, line } of [...flats, ...slopes]) {
              const [x, y] = label(line, widthOf(name));
              inner.append(shape("text", { class: "name over", x, y }, name));
            }
          };
        },
      });
      const unknown = compute.length === 0 ? [] : distinct(rows.filter((row) => get("peak_gbps", row) !== null && get("peak_tflops", row) === null), (row) => get("series", row));
      if (compute.length + memory.length === 0) place.append(element("p", { class: "faint" }, "The records have no peaks of this device."));
      if (unknown.length > 0) place.append(element("p", { class: "faint" }, `No compute peak was measured for ${unknown.join(", ")}.`));
    },
  });
}

// Highest peak per label, highest first. A peak may rise during a run. `vague` is dropped if there are other labels.
function roofs(rows, column, scale, name, vague) {
  const measured = rows.filter((row) => get(column, row) > 0);
  const several = distinct(rows, (row) => get("device", row)).length > 1;
  const known = measured.some((row) => name(row) !== vague) ? measured.filter((row) => name(row) !== vague) : measured;
  const label = (row) => several ? `${get("device", row)} ${name(row)}` : name(row);
  return [...grouped(known, label)].map(([name, all]) => ({ name, peak: scale * extent(all.map((row) => get(column, row)))[1] }))
    .sort((a, b) => b.peak - a.peak);
}

// Places labels along lines of pixels, as close to the end of the line as possible, such that they overlap no other label and as few
// lines and points as possible. Returns the left end of the base line.
function labelPlacer(lines, points, left) {
  const STEPS = 12, HEIGHT = 15, SAMPLES = 200;
  const along = ([from, to], share) => [0, 1].map((axis) => to[axis] + (from[axis] - to[axis]) * share);
  const obstacles = [...points, ...lines.flatMap((line) => Array.from({ length: SAMPLES + 1 }, (_, sample) => along(line, sample / SAMPLES)))];
  const placed = [];
  const isCovered = (box) => placed.some((other) => box.x < other.x + other.width && other.x < box.x + box.width && box.y < other.y + HEIGHT && other.y < box.y + HEIGHT);
  const hidden = ({ x, y, width }) => obstacles.filter(([px, py]) => px >= x - 3 && px <= x + width + 3 && py >= y - 3 && py <= y + HEIGHT + 3).length;
  return (line, width) => {
    const boxes = Array.from({ length: STEPS }, (_, step) => along(line, step / STEPS)).flatMap(([x, y]) => {
      const right = Math.max(x - 4 - width, left);
      return [{ x: right, y: y - HEIGHT - 4, width }, { x: right, y: y + 4, width }, { x: x + 4, y: y + 4, width }];
    }).filter(({ x }) => x + width < Math.max(...lines.flat().map(([end]) => end)));
    const free = boxes.filter((box) => !isCovered(box)).map((box) => ({ box, hidden: hidden(box) }));
    const box = free.length > 0 ? free.reduce((best, one) => one.hidden < best.hidden ? one : best).box : boxes[0] ?? { x: left, y: line[1][1] - HEIGHT - 4, width };
    while (isCovered(box)) box.y -= HEIGHT;
    placed.push(box);
    return [box.x, box.y + HEIGHT - 3];
  };
}
