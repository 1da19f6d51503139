// Accuracy and speed-up, with the Pareto front.
function accuracy() {
  const exact = (row) => get("rel_l2", row) === 0;
  figure({
    id: "accuracy", title: "Accuracy and speed-up",
    lead: "Small points are cases. Large points are recipes with their implementation: geometric mean of the speed-ups and median SQNR. The dotted line is the Pareto front.",
    has: (row) => isOk(row) && isModel(row) && get("speedup", row) > 0 && (get("sqnr_db", row) !== null || exact(row)),
    draw: (rows, place, width) => {
      const known = values(rows, "sqnr_db");
      const [low, high] = range(known.length ? known : [0, 1], false);
      // An exact output has no noise, so it is drawn above all SQNRs.
      const ceiling = high + (high - low) * 0.12;
      const quality = (row) => exact(row) ? ceiling : get("sqnr_db", row);
      const sqnrText = (value) => value >= ceiling ? "exact" : FORMATS.decibels(value);
      const small = seriesOf(rows, (row) => ({ x: get("speedup", row), y: quality(row), row, tip: () => [get("id", row), `${times(get("speedup", row))}, ${sqnrText(quality(row))}`] }));
      const means = small.map((one) => {
        const x = geometricMean(one.points.map((point) => point.x)), y = median(one.points.map((point) => point.y));
        return { ...one, large: true, points: [{ x, y, tip: () => [one.name, `${times(x)} over ${cases(one.points.length)}, ${sqnrText(y)}`] }] };
      });
      const front = means.map(({ points }) => points[0]).filter((one, _, all) => !all.some((other) => other !== one && other.x >= one.x && other.y >= one.y && (other.x > one.x || other.y > one.y)))
        .sort((a, b) => a.x - b.x);
      place.replaceChildren();
      const faded = small.map((one) => ({ ...one, faded: true }));
      chart(place, width, {
        title: "Accuracy and speed-up", series: [...faded, ...means],
        x: { label: "speed-up over the baseline", format: "ratio", log: true, range: range([1, ...rows.map((row) => get("speedup", row))], true) },
        y: { label: "SQNR", format: "decibels", log: false, range: [low, ceiling + (high - low) * 0.06] },
        under: ({ inner, X, Y, left, right, top, bottom }) => {
          inner.append(shape("line", { class: "roof", x1: X(1), x2: X(1), y1: top, y2: bottom }));
          if (rows.some(exact)) {
            inner.append(shape("line", { class: "grid", x1: left, x2: right, y1: Y(ceiling), y2: Y(ceiling) }),
              shape("text", { class: "name over", x: left + 2, y: Y(ceiling) - 5 }, "exact"));
          }
          const steps = front.map(({ x, y }, index) => index === 0 ? `M${X(x)} ${Y(y)}` : `V${Y(y)}H${X(x)}`.replace(/^V.*?H/, `H${X(x)}V${Y(y)}H`));
          inner.append(shape("path", { class: "front", d: steps.join("") }));
        },
      });
      place.append(table([["Pareto front", "text"], ["speed-up"], ["SQNR"]],
        means.filter(({ points }) => front.includes(points[0])).sort((a, b) => a.points[0].x - b.points[0].x).map(({ name, points: [{ x, y }] }) => [name, times(x), sqnrText(y)])));
    },
  });
}
