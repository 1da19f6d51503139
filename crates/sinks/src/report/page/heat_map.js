// Mean speed-ups over two selectable axes.
function heatMap() {
  const has = (row) => isOk(row) && get("speedup", row) !== null;
  const labels = new Map([...data.filters.filter(([name]) => name !== "status"), ...data.properties, ...AXES.map((name) => [name, name])]);
  const chosen = { rows: data.heat_map[0], columns: data.heat_map[1] };
  const MAX_LINES = 120;

  // Sizes are sorted numerically; other labels stay in order of first occurrence, with the baseline first.
  const order = (found, name) => {
    if (found.every((value) => typeof value === "number")) return found.sort((a, b) => a - b);
    if (name === "shape") return found.sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    const there = new Set(found);
    const names = distinct(ALL_ROWS.filter(isOk), (row) => get(name, row)).filter((name) => there.has(name));
    return [...names.filter((name) => name === "baseline"), ...names.filter((name) => name !== "baseline")];
  };
  const color = (ratio) => {
    const far = Math.min(Math.abs(Math.log2(ratio)) / 2, 1);
    return `color-mix(in srgb, var(${ratio < 1 ? "--slower" : "--faster"}) ${Math.round(10 + 65 * far)}%, var(--ground))`;
  };
  const drawCell = (rows) => {
    if (rows === undefined) return element("td", {}, "");
    const ratios = positive(rows, "speedup");
    const mean = geometricMean(ratios);
    const shown = element("span", { class: "cell" }, times(mean));
    if (Math.abs(Math.log2(mean)) > 0.02) shown.style.background = color(mean);
    if (rows.length > 1) shown.append(element("small", {}, ` (${count(rows.length)})`));
    const ends = `${cases(rows.length)}, ${times(Math.min(...ratios))} to ${times(Math.max(...ratios))}`;
    return element("td", { title: ends }, shown);
  };

  figure({
    id: "heat-map", title: "Mean speed-ups", has,
    lead: "Geometric mean, and number of cases in parentheses. Blue is faster than the baseline, orange slower.",
    controls: (rows, again) => {
      const options = [...labels].filter(([name]) => Object.values(chosen).includes(name) || distinct(rows, (row) => get(name, row)).length > 1);
      return ["rows", "columns"].map((side) => {
        const made = chooser(side, options, chosen[side], (value) => { chosen[side] = value; again(); });
        made.list.id = `heat-${side}`;
        return made.label;
      });
    },
    draw: (rows, place) => {
      const [down, across] = [chosen.rows, chosen.columns].map((name) => (row) => get(name, row));
      const names = order(distinct(rows, down), chosen.rows), heads = order(distinct(rows, across), chosen.columns);
      const cells = grouped(rows, down);
      const head = element("tr", {}, element("th", { scope: "col" }, `${labels.get(chosen.rows)} \\ ${labels.get(chosen.columns)}`),
        ...heads.slice(0, MAX_LINES).map((name) => element("th", { scope: "col" }, String(name))));
      const body = names.slice(0, MAX_LINES).map((name) => {
        const inside = grouped(cells.get(name), across);
        return element("tr", {}, element("th", { scope: "row" }, String(name)), ...heads.slice(0, MAX_LINES).map((head) => drawCell(inside.get(head))));
      });
      const cut = Math.max(names.length, heads.length) > MAX_LINES;
      place.replaceChildren(element("div", { class: "scroll" },
        element("table", { class: "heat" }, element("thead", {}, head), element("tbody", {}, ...body))),
      ...(cut ? [element("p", { class: "faint" }, `Shows the first ${MAX_LINES} of ${count(names.length)} rows and ${count(heads.length)} columns; use the filter to reduce them.`)] : []));
    },
  });
}
