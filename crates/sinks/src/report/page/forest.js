// Forest plot: the speed-up of each case with its 95 % interval, by comparison group.
function forest() {
  const MAX_LINES = 60;
  const compared = new Set(data.forest.flatMap(({ lines }) => lines.map(({ row }) => row)));
  let whole = false;
  const cut = (text, room) => {
    const width = widthOf(text);
    return width <= room ? text : `${text.slice(0, Math.max(1, Math.floor(text.length * room / width) - 1))}…`;
  };
  const label = (row, narrow) => {
    const [ratio, lo, hi] = ["speedup", "speedup_lo", "speedup_hi"].map((name) => get(name, row));
    return `${times(ratio)}${narrow || lo === null || hi === null ? "" : ` [${times(lo)}, ${times(hi)}]`} ${get("verdict", row)}`;
  };

  figure({
    id: "forest", title: "Speed-ups", has: (row) => compared.has(row),
    lead: "Speed-up of each case over its reference, with 95 % confidence interval, on a logarithmic scale. Above 1× is faster. Fastest cases first in each comparison group.",
    draw: (rows, place, width) => {
      const selected = new Set(rows);
      const groups = data.forest.map(({ heading, lines }) => ({ heading, lines: lines.filter(({ row }) => selected.has(row)) })).filter(({ lines }) => lines.length > 0);
      const all = groups.flatMap(({ heading, lines }) => [...(heading === "" ? [] : [{ heading }]), ...lines]);
      const shown = [];
      let drawnCases = 0;
      for (const line of all) {
        if (!whole && drawnCases === MAX_LINES) break;
        shown.push(line);
        if (line.row !== undefined) drawnCases++;
      }
      const narrow = width < 640, room = Math.max(width - 30, 220), caseHeight = narrow ? 38 : 21, headingHeight = 26;
      const cases = shown.filter(({ row }) => row !== undefined);
      const [lowest, highest] = extent(rows.map((row) => get("speedup", row)));
      // A very wide interval must not squeeze all others.
      const end = (name, row) => Math.min(Math.max(get(name, row) ?? get("speedup", row), lowest / 2), highest * 2);
      const xs = range([1, ...rows.flatMap((row) => [end("speedup_lo", row), end("speedup_hi", row)])], true);
      const widest = (texts) => texts.reduce((most, text) => Math.max(most, widthOf(text)), 0);
      const left = narrow ? 8 : Math.min(widest(cases.map(({ name }) => name)) + 14, room * .4);
      const right = narrow ? room - 8 : room - 1.08 * widest(cases.map(({ row }) => label(row, false))) - 20;
      const X = (value) => left + (right - left) * Math.log(Math.min(Math.max(value, xs[0]), xs[1]) / xs[0]) / Math.log(xs[1] / xs[0]);

      let bottom = 4;
      for (const line of shown) {
        line.top = bottom;
        bottom += line.row === undefined ? headingHeight : caseHeight;
        line.y = narrow ? bottom - 11 : bottom - caseHeight / 2;
      }
      const axis = shape("svg", { class: "chart axis", height: 24, viewBox: `0 0 ${room} 24`, "aria-hidden": "true" });
      const drawn = shape("svg", { class: "chart", height: bottom + 6, viewBox: `0 0 ${room} ${bottom + 6}`, role: "img", tabindex: 0,
        "aria-label": `Speed-ups with intervals: ${count(cases.length)} cases. Arrow keys select a case, Enter opens it.` });
      let free = 0;
      for (const tick of ticks(...xs, true, Math.max(2, Math.floor((right - left) / 70)))) {
        drawn.append(shape("line", { class: "grid", x1: X(tick), x2: X(tick), y1: 0, y2: bottom }));
        const half = widthOf(times(tick)) / 2;
        if (X(tick) - half < free || X(tick) + half > room) continue;
        free = X(tick) + half + 8;
        axis.append(shape("text", { x: X(tick), y: 16, "text-anchor": "middle" }, times(tick)));
      }
      drawn.append(shape("line", { class: "one", x1: X(1), x2: X(1), y1: 0, y2: bottom }));
      const intervals = new Map(), points = new Map();
      const add = (paths, key, d) => paths.set(key, (paths.get(key) ?? "") + d);
      for (const { heading, name, row, top, y } of shown) {
        if (row === undefined) {
          const text = cut(heading, (room - 8) / 1.1);
          drawn.append(shape("rect", { class: "cover", x: 0, y: top + 2, width: widthOf(text) * 1.08 + 10, height: headingHeight - 4 }),
            shape("text", { class: "heading", x: 0, y: top + 18 }, text));
          continue;
        }
        const [lo, hi] = [get("speedup_lo", row), get("speedup_hi", row)], verdict = get("verdict", row).toLowerCase();
        if (lo !== null && hi !== null) add(intervals, verdict, `M${X(lo).toFixed(1)} ${y - 4}v8m0 -4H${X(hi).toFixed(1)}m0 -4v8`);
        add(points, verdict, `M${X(get("speedup", row)).toFixed(1)} ${y}${MARKERS[0](4.2)}`);
        const value = label(row, narrow);
        if (narrow) drawn.append(shape("rect", { class: "cover", x: 0, y: top, width: room, height: 20 }));
        drawn.append(shape("text", { class: "name over", x: narrow ? 8 : 6, y: narrow ? top + 15 : y + 4 }, cut(name, narrow ? room - widthOf(value) - 28 : left - 12)),
          shape("text", { class: `over ${verdict}`, x: narrow ? room - 8 : right + 14, y: narrow ? top + 15 : y + 4, "text-anchor": narrow ? "end" : "start" }, value));
      }
      for (const [verdict, d] of intervals) drawn.append(shape("path", { class: `interval ${verdict}`, d }));
      for (const [verdict, d] of points) drawn.append(shape("path", { class: `points ${verdict}`, d }));
      const spots = cases.map(({ row, y }) => ({ x: X(get("speedup", row)), y, row, tip: () => [get("id", row), label(row, false), `relative to ${get("speedup_vs", row)}`] }));
      selectable(drawn, drawn, spots, (_, y) => cases.findIndex((line) => y >= line.top && y < line.top + caseHeight));
      place.replaceChildren(element("div", { class: "scroll forest" }, axis, drawn));
      if (rows.length > MAX_LINES) {
        const toggle = element("button", { type: "button", onclick: () => { whole = !whole; outdate(watched.get(place.parentElement)); } },
          whole ? `Show the first ${MAX_LINES}` : `Show all ${count(rows.length)} cases`);
        place.append(element("div", { class: "controls" }, toggle));
      }
    },
  });
}
