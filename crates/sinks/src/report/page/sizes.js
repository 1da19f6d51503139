// Metrics over size, and crossovers between series.
function sizes() {
  const chosen = { x: data.size, y: "time_ns", at: null };
  let places;
  const has = (row) => data.size !== null && isOk(row) && get("time_ns", row) > 0;
  const work = new Map(data.work), named = (name) => work.get(name) ?? name;

  // Name of a group: all that is constant while one size varies.
  const others = (row) => {
    const fixed = AXES.includes(chosen.x) ? AXES.filter((axis) => axis !== chosen.x && get(axis, row) !== null).map((axis) => `${axis}${get(axis, row)}`) : [];
    const names = ["run", "workload", "device", "dtype", "regime"].filter((name) => FILTERS.some((filter) => filter.name === name));
    return joined([...names.map((name) => get(name, row)), ...fixed], " · ") || "all";
  };
  const interval = (row) => {
    const figure = get(chosen.y, row), median = get("time_ns", row);
    const [lo, hi] = chosen.y === "speedup" ? [get("speedup_lo", row), get("speedup_hi", row)] : [get("time_ns_lo", row), get("time_ns_hi", row)];
    if (!(lo > 0) || hi === null) return {};
    if (chosen.y === "speedup" || chosen.y === "time_ns") return { lo, hi };
    return { lo: figure * median / hi, hi: figure * median / lo };
  };

  figure({
    id: "sizes", title: "Scaling with size", has,
    lead: "One size varies, the others are constant. Bars are 95 % confidence intervals.",
    controls: (rows, again) => {
      const xs = [...AXES, ...work.keys()].filter((name) => distinct(rows, (row) => get(name, row)).length > 1);
      const ys = data.size_metrics.filter(([, , column]) => positive(rows, column).length > 0);
      const x = chooser("size", (xs.length ? xs : ["flops"]).map((name) => [name, named(name)]), chosen.x, (value) => { chosen.x = value; again(); });
      const y = chooser("metric", ys.map(([, label, column]) => [column, label]), chosen.y, (value) => { chosen.y = value; again(); });
      places = chooser("at", [], "", (value) => { chosen.at = value; again(); });
      return [x.label, y.label, places.label];
    },
    draw: (rows, place, width) => {
      const [, label, , format] = data.size_metrics.find(([, , column]) => column === chosen.y);
      const usable = rows.filter((row) => get(chosen.x, row) > 0 && get(chosen.y, row) > 0);
      const groups = [...grouped(usable, others)].map(([name, group]) => ({ name, group, sizes: distinct(group, (row) => get(chosen.x, row)).length }))
        .sort((a, b) => b.sizes - a.sizes || b.group.length - a.group.length);
      places.list.replaceChildren(...groups.slice(0, 500).map(({ name, sizes }) => element("option", { value: name }, `${name} (${sizes === 1 ? "1 size" : `${sizes} sizes`})`)));
      const group = groups.find(({ name }) => name === chosen.at) ?? groups[0];
      place.replaceChildren();
      if (group === undefined) return place.append(element("p", { class: "faint" }, "No data for the selected cases."));
      places.list.value = group.name;
      const series = seriesOf(group.group, (row) => ({
        x: get(chosen.x, row), y: get(chosen.y, row), row, ...interval(row),
        tip: () => [get("id", row), `${label}: ${FORMATS[format](get(chosen.y, row))}`],
      }));
      for (const { points } of series) points.sort((a, b) => a.x - b.x);
      chart(place, width, { title: `${label} against ${named(chosen.x)}`, series, lines: true,
        x: { label: named(chosen.x), format: "size", log: true }, y: { label, format, log: true } });
      const found = crossings(series).slice(0, 12);
      if (found.length > 0) place.append(element("h3", {}, "Crossovers"), element("ul", {}, ...found.map((text) => element("li", {}, text))));
    },
  });

  // Significant crossovers of pairs with equal recipe or implementation, between adjacent common sizes.
  function crossings(series) {
    const found = [];
    const parts = (one) => [get("item", one.points[0].row), get("implementation", one.points[0].row)];
    series.forEach((one, index) => series.slice(index + 1).forEach((other) => {
      const [a, b] = [parts(one), parts(other)];
      if (a[0] !== b[0] && a[1] !== b[1]) return;
      const theirs = new Map(other.points.map((point) => [point.x, point]));
      const common = one.points.filter(({ x }) => theirs.has(x)).map((point) => ({ x: point.x, ours: point, theirs: theirs.get(point.x) }));
      for (let at = 0; at + 1 < common.length; at++) {
        const lead = ({ ours, theirs }) => Math.log(ours.y / theirs.y) * (chosen.y === "time_ns" ? -1 : 1);
        const [before, after] = [lead(common[at]), lead(common[at + 1])];
        if (before * after >= 0 || common[at].x === common[at + 1].x) continue;
        const apart = ({ ours, theirs }) => ours.lo !== undefined && theirs.lo !== undefined && (ours.hi < theirs.lo || theirs.hi < ours.lo);
        if (!apart(common[at]) || !apart(common[at + 1])) continue;
        const crossing = common[at].x * (common[at + 1].x / common[at].x) ** (before / (before - after));
        const [winner, loser] = after > 0 ? [one.name, other.name] : [other.name, one.name];
        found.push(`${winner} overtakes ${loser} between ${named(chosen.x)} = ${count(common[at].x)} and ${count(common[at + 1].x)}, at about ${digits(crossing, 2)}`);
      }
    }));
    return found;
  }
}
