// Clock, power, temperature and throttling of the cases.
function clocks() {
  const model = data.group_tables.find(({ id }) => id === "clocks");
  if (model === undefined) return void unmeasured.push("clocks and power");
  const shown = new Set(model.cases);
  const chosen = { y: null };
  const started = (row) => get("started", row) ?? "";
  figure({
    ...model, has: (row) => shown.has(row),
    controls: (rows, again) => {
      const available = model.figures.filter(([, column, aggregate]) => aggregate === "median" && values(rows, column).some((value) => value !== 0));
      chosen.y = available[0]?.[1] ?? model.figures[0][1];
      const made = chooser("metric", available.map(([heading, column]) => [column, heading]), chosen.y, (value) => { chosen.y = value; again(); });
      made.list.id = "clocks-figure";
      return [made.label];
    },
    draw: (rows, place, width) => {
      const [label, column, , format] = model.figures.find(([, column]) => column === chosen.y);
      const order = new Map([...rows].sort((a, b) => started(a).localeCompare(started(b), "en")).map((row, index) => [row, index + 1]));
      place.replaceChildren();
      const series = seriesOf(rows.filter((row) => get(column, row) !== null), (row) => ({ x: order.get(row), y: get(column, row), row,
        tip: () => [get("id", row), `${label}: ${FORMATS[format](get(column, row))}`, get("throttle", row) === null ? "" : `throttled by ${get("throttle", row)}`] }));
      if (series.length > 0) chart(place, width, { title: label, series, height: 300, x: { label: "cases in order of measurement", format: "plain" }, y: { label, format } });
      place.append(groupedCases(rows, model));
    },
  });
}
