// Chart with points, lines and intervals over two axes, usually logarithmic.
const pen = document.createElement("canvas").getContext("2d");
function widthOf(text) {
  pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

// Style of a series: color by recipe or operator, marker by implementation. The colors repeat after eight, with hollow markers.
function seriesStyle({ item, marker }) {
  return { color: item === null ? "s8" : `s${item % 8}${item % 16 >= 8 ? " hollow" : ""}`, form: MARKERS[marker % MARKERS.length] };
}
const MARKERS = [
  (r) => `m${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`,
  (r) => `m${-r * 0.9} ${-r * 0.9}h${r * 1.8}v${r * 1.8}h${-r * 1.8}z`,
  (r) => `m0 ${-r * 1.25}l${r * 1.15} ${r * 2}h${-r * 2.3}z`,
  (r) => `m0 ${-r * 1.35}l${r * 1.35} ${r * 1.35}l${-r * 1.35} ${r * 1.35}l${-r * 1.35} ${-r * 1.35}z`,
  (r) => `m${-r * 0.4} ${-r * 1.2}h${r * 0.8}v${r * 0.8}h${r * 0.8}v${r * 0.8}h${-r * 0.8}v${r * 0.8}h${-r * 0.8}v${-r * 0.8}h${-r * 0.8}v${-r * 0.8}h${r * 0.8}z`,
];

function legend(series) {
  const item = ({ name, color, form }) => element("li", {},
    shape("svg", { class: color, viewBox: "-8 -6 16 12", "aria-hidden": "true" }, shape("path", { class: "points", d: `M0 0${form(4.5)}` })), name);
  return element("ul", { class: "legend" }, ...series.map(item));
}

// Round values between two ends, about `most` of them.
function ticks(low, high, log, most) {
  const found = [];
  if (log) {
    const decades = Math.log10(high / low);
    const steps = decades > most ? [1] : decades > most / 3 ? [1, 3] : [1, 2, 5];
    const every = Math.max(1, Math.ceil(decades / most));
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
      if (power % every !== 0) continue;
      for (const step of steps) found.push(step * 10 ** power);
    }
    const inside = found.filter((value) => value >= low * 0.999 && value <= high * 1.001);
    if (inside.length >= 2) return inside;
    found.length = 0;
  }
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough * 0.999);
  for (let value = Math.ceil(low / step) * step; value <= high * 1.000001; value += step) found.push(Number(value.toPrecision(12)));
  return found;
}

// Minimum and maximum; spreading a long list into arguments would overflow the stack.
function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) { low = Math.min(low, value); high = Math.max(high, value); }
  return [low, high];
}

// Range of the values with a margin.
function range(values, log) {
  const [low, high] = extent(values);
  if (log) {
    const room = Math.max((high / low) ** 0.04, 1.08);
    return [low / room, high * room];
  }
  const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  return [low - room, high + room];
}

// `x` and `y` have a label, the name of a number format, a flag for logarithmic scale and optionally a range. `series` have a
// name, a style and points; `under` draws the background, and may return a function that draws over the points.
function chart(place, room, { title, x, y, series, under, lines = false, height = 380 }) {
  [x, y] = [x, y].map((axis) => ({ ...axis, text: FORMATS[axis.format] }));
  // The panel has a border and padding.
  const width = Math.max(room - 26, 220);
  const points = series.flatMap((one) => one.points);
  const xs = x.range ?? range(points.map((point) => point.x), x.log);
  const ys = y.range ?? range(points.flatMap((point) => [point.lo ?? point.y, point.hi ?? point.y]), y.log);
  const yTicks = ticks(...ys, y.log, 7);
  const left = Math.ceil(Math.max(...yTicks.map((tick) => widthOf(y.text(tick))))) + 10, right = width - 12;
  const top = 26, bottom = height - 42;
  const along = (value, [low, high], log) => log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  const X = (value) => left + (right - left) * along(value, xs, x.log);
  const Y = (value) => bottom - (bottom - top) * along(value, ys, y.log);

  const drawn = shape("svg", { class: "chart", height, viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: 0,
    "aria-label": `${title}: ${cases(points.length)}. Arrow keys select a point, Enter opens it.` });
  for (const tick of yTicks) {
    drawn.append(shape("line", { class: "grid", x1: left, x2: right, y1: Y(tick), y2: Y(tick) }),
      shape("text", { x: left - 6, y: Y(tick) + 4, "text-anchor": "end" }, y.text(tick)));
  }
  let free = 0;
  for (const tick of ticks(...xs, x.log, Math.max(2, Math.floor((right - left) / 80)))) {
    drawn.append(shape("line", { class: "grid", x1: X(tick), x2: X(tick), y1: top, y2: bottom }));
    const half = widthOf(x.text(tick)) / 2;
    if (X(tick) - half < free || X(tick) + half > width) continue;
    free = X(tick) + half + 10;
    drawn.append(shape("text", { x: X(tick), y: bottom + 17, "text-anchor": "middle" }, x.text(tick)));
  }
  drawn.append(shape("text", { class: "name", x: left, y: 14 }, y.label),
    shape("text", { class: "name", x: right, y: height - 6, "text-anchor": "end" }, x.label));
  const inner = shape("svg", { x: left - 6, y: top - 6, width: right - left + 12, height: bottom - top + 12,
    viewBox: `${left - 6} ${top - 6} ${right - left + 12} ${bottom - top + 12}` });
  drawn.append(inner);
  const over = under?.({ inner, X, Y, xs, ys, left, right, top, bottom });

  const size = points.length > 2000 ? 2.2 : points.length > 300 ? 3 : 4.2;
  for (const { color, form, points, faded, large } of series) {
    const at = (point) => `M${X(point.x).toFixed(1)} ${Y(point.y).toFixed(1)}`;
    if (lines && points.length > 1) inner.append(shape("path", { class: `line ${color}`, d: points.map(at).join("").replaceAll("M", "L").replace("L", "M") }));
    const intervals = points.filter((point) => point.lo !== undefined);
    if (intervals.length > 0) {
      const d = intervals.map((point) => `M${X(point.x).toFixed(1)} ${Y(point.lo).toFixed(1)}V${Y(point.hi).toFixed(1)}`);
      inner.append(shape("path", { class: `interval ${color}`, d: d.join("") }));
    }
    inner.append(shape("path", { class: `points ${color}${faded ? " faded" : ""}`, d: points.map((point) => at(point) + form(large ? 6.5 : size)).join("") }));
  }

  over?.();
  const ordered = points.filter((point) => point.tip).sort((a, b) => a.x - b.x || a.y - b.y);
  selectable(drawn, inner, ordered.map(({ x, y, row, tip }) => ({ x: X(x), y: Y(y), row, tip })), (x, y, spots) => {
    let best = -1, nearest = 18 ** 2;
    spots.forEach((spot, index) => {
      const far = (spot.x - x) ** 2 + (spot.y - y) ** 2;
      if (far < nearest) { nearest = far; best = index; }
    });
    return best;
  });
  place.append(element("div", { class: "panel" }, drawn, legend(series.filter(({ faded }) => !faded))));
}

// Selection of a spot by pointer or keyboard. A spot has a position in pixels, a tip, and the row that Enter and click open; `find`
// returns the index of the spot at a position, or -1.
function selectable(drawn, layer, spots, find) {
  const ring = shape("circle", { class: "ring", r: 8, visibility: "hidden" });
  layer.append(ring);
  let current = -1;
  const mark = (index) => {
    current = index;
    if (index < 0) { ring.setAttribute("visibility", "hidden"); hideTip(); return; }
    const { x, y, tip } = spots[index];
    ring.setAttribute("cx", x);
    ring.setAttribute("cy", y);
    ring.setAttribute("visibility", "visible");
    const box = drawn.getBoundingClientRect();
    showTip(tip(), box.left + x, box.top + y);
  };
  const open = () => { if (spots[current]?.row !== undefined) { const { row } = spots[current]; mark(-1); openRecord(row); } };
  drawn.addEventListener("pointermove", (event) => {
    const box = drawn.getBoundingClientRect(), found = find(event.clientX - box.left, event.clientY - box.top, spots);
    if (found !== current) mark(found);
  });
  drawn.addEventListener("pointerleave", () => mark(-1));
  drawn.addEventListener("blur", () => mark(-1));
  drawn.addEventListener("click", open);
  drawn.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter") open();
    else if (event.key === "Escape") mark(-1);
    else if (step === undefined || spots.length === 0) return;
    else {
      mark((current + step + spots.length) % spots.length);
      ring.scrollIntoView({ block: "nearest" });
    }
    event.preventDefault();
  });
}

// One series per recipe or operator and implementation; rows without a point are omitted.
function seriesOf(rows, point) {
  const made = [];
  for (const [name, group] of grouped(rows, (row) => get("series", row))) {
    const points = group.map((row) => point(row)).filter((found) => found !== null);
    if (points.length > 0) made.push({ name, ...seriesStyle(data.styles[columns.get("series").at[group[0]]]), points });
  }
  return made;
}
