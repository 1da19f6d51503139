// Speed-ups over two selectable axes.
function heatMap() {
  const has = (row) => isOk(row) && get("speedup", row) !== null;
  const named = [...FIELDS.filter(({ name }) => name !== "status"),
    { name: "who", label: "recipe and implementation", read: itemAndImplementation }, { name: "what", label: "recipe or operator", read: comparedItem },
    { name: "shape_name", label: "shape set", read: (row) => get("shape_name", row) },
    { name: "shape", label: "shape", read: (row) => get("shape", row) },
    ...AXES.map((name) => ({ name, label: name, read: (row) => get(name, row) }))];
  const by = new Map(named.map((field) => [field.name, field]));
  const chosen = { rows: "what", columns: "implementation" };
  const MAX_LINES = 120;

  // Sizes are sorted numerically; other labels stay in order of first occurrence, with the baseline first.
  const order = (found, { name, read }) => {
    if (found.every((value) => typeof value === "number")) return found.sort((a, b) => a - b);
    if (name === "shape") return found.sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    const there = new Set(found);
    const names = distinct(ALL_ROWS.filter(isOk), read).filter((name) => there.has(name));
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
    if (rows.length > 1) shown.append(element("small", {}, ` of ${count(rows.length)}`));
    const ends = `${cases(rows.length)}, ${times(Math.min(...ratios))} to ${times(Math.max(...ratios))}`;
    return element("td", { title: ends }, shown);
  };

  figure({
    id: "heat-map", title: "Speed-ups", has,
    lead: "Geometric mean and number of cases of each cell. Blue is faster than the baseline, orange slower.",
    controls: (rows, again) => {
      const useful = named.filter(({ read }) => distinct(rows, read).length > 1);
      const usual = (names, other) => names.find((name) => name !== other && useful.some((field) => field.name === name)) ?? names[0];
      chosen.rows = usual(["what", "workload", "implementation", "shape"], "");
      // For a single recipe the shapes form one column; over one of their axes only a diagonal would be filled.
      chosen.columns = chosen.rows === "shape" ? "who" : usual(["implementation", ...AXES, "shape", "workload", "device", "dtype"], chosen.rows);
      const options = (useful.length ? useful : named.slice(2, 5)).map(({ name, label }) => [name, label]);
      for (const name of Object.values(chosen)) if (!options.some(([known]) => known === name)) options.push([name, by.get(name).label]);
      return ["rows", "columns"].map((side) => {
        const made = chooser(side, options, chosen[side], (value) => { chosen[side] = value; again(); });
        made.list.id = `heat-${side}`;
        return made.label;
      });
    },
    draw: (rows, place) => {
      const [down, across] = [by.get(chosen.rows), by.get(chosen.columns)];
      const names = order(distinct(rows, down.read), down), heads = order(distinct(rows, across.read), across);
      const cells = grouped(rows, down.read);
      const head = element("tr", {}, element("th", { scope: "col" }, `${down.label} \\ ${across.label}`),
        ...heads.slice(0, MAX_LINES).map((name) => element("th", { scope: "col" }, String(name))));
      const body = names.slice(0, MAX_LINES).map((name) => {
        const inside = grouped(cells.get(name), across.read);
        return element("tr", {}, element("th", { scope: "row" }, String(name)), ...heads.slice(0, MAX_LINES).map((head) => drawCell(inside.get(head))));
      });
      const cut = Math.max(names.length, heads.length) > MAX_LINES;
      place.replaceChildren(element("div", { class: "scroll" },
        element("table", { class: "heat" }, element("thead", {}, head), element("tbody", {}, ...body))),
      ...(cut ? [element("p", { class: "faint" }, `Shows the first ${MAX_LINES} of ${count(names.length)} rows and ${count(heads.length)} columns; use the filter to reduce them.`)] : []));
    },
  });
}
