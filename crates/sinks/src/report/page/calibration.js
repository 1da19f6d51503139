// Comparison of calibration profiles: peaks, memory levels, operators, fusion.
function calibration() {
  if (data.calibration === null) return;
  const { tables, curves, notes } = data.calibration;
  const made = section("calibration", "Calibration", element("p", { class: "faint" },
    "Results of calorimeter calibrate on each machine. Ratios are relative to the first machine; above 1× is faster."));
  for (const [name, { title, heading, columns, rows }] of tables) {
    made.append(element("h3", {}, title), table([[heading, "text words"], ...columns.map(({ header, length }) => [header, headClass(length === "ratio", length === "none")])],
      rows.map(({ name, values }) => [name, ...values.map((found, index) => figureCell(columns[index].length === "ratio", found))]), { class: "bars", id: `calibration-${name}` }));
  }
  if (curves.length > 0) {
    const place = element("div", { class: "place" });
    const draw = (title) => {
      const { x, y, lines, series } = curves.find((curve) => curve.title === title);
      const drawn = series.map(({ name, style, points, tips }) => ({ name, ...seriesStyle(style), points: points.map((point, index) => ({ ...point, tip: () => tips[index] })) }));
      place.replaceChildren();
      chart(place, Math.max(place.clientWidth, 320), { title, series: drawn, lines, x, y });
    };
    const choice = chooser("operator", curves.map(({ title }) => [title, title]), curves[0].title, draw);
    choice.list.id = "calibration-curve";
    made.append(element("h3", {}, "Scaling with size"), element("div", { class: "controls" }, choice.label), place);
    draw(curves[0].title);
  }
  if (notes.length > 0) made.append(element("h3", {}, "Notes"), element("ul", {}, ...notes.map((text) => element("li", {}, text))));
}
