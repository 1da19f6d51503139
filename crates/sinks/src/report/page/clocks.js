// At which clock and power cases were measured, how warm the device was, and what held it back.
function clocks() {
  const FIGURES = [
    { name: "clock_mhz", label: "clock", text: (value) => `${digits(value)} MHz` },
    { name: "memory_clock_mhz", label: "memory's clock", text: (value) => `${digits(value)} MHz` },
    { name: "power_w", label: "power", text: (value) => `${digits(value, 3)} W` },
    { name: "temperature_c", label: "temperature", text: (value) => `${digits(value, 3)} °C` },
    { name: "held_back", label: "windows held back", text: (value) => percent(100 * value) },
    { name: "joules", label: "energy of one pass", text: (value) => scaled(value * 1e9, [["nJ", 1], ["µJ", 1e3], ["mJ", 1e6], ["J", 1e9]]) },
  ];
  const chosen = { y: null };
  const turn = (row) => get("started", row) ?? "";
  const held = (rows) => {
    const reasons = rows.flatMap((row) => (get("throttle", row) ?? "").split(", ")).filter((reason) => reason !== "");
    return [...grouped(reasons, (reason) => reason)].map(([reason, all]) => `${reason} in ${cases(all.length)}`).join(", ");
  };
  figure({
    id: "clocks", title: "Clocks and power",
    lead: "What the device's sensors said while cases were measured: the middle sample of each. Below, the middle over the cases, and what held the device back.",
    has: (row) => isOk(row) && FIGURES.some(({ name }) => get(name, row) !== null),
    controls: (rows, again) => {
      const there = FIGURES.filter(({ name }) => rows.some((row) => get(name, row) !== null));
      chosen.y = there[0].name;
      const made = chooser("figure", there.map(({ name, label }) => [name, label]), chosen.y, (value) => { chosen.y = value; again(); });
      made.list.id = "clocks-figure";
      return [made.label];
    },
    draw: (rows, place, width) => {
      const figure = FIGURES.find(({ name }) => name === chosen.y);
      const order = new Map([...rows].sort((a, b) => turn(a).localeCompare(turn(b), "en")).map((row, index) => [row, index + 1]));
      place.replaceChildren();
      const series = seriesOf(rows.filter((row) => get(chosen.y, row) !== null), (row) => ({ x: order.get(row), y: get(chosen.y, row), row,
        tip: () => [get("id", row), `${figure.label}: ${figure.text(get(chosen.y, row))}`, get("throttle", row) === null ? "" : `held back by ${get("throttle", row)}`] }));
      if (series.length > 0) chart(place, width, { title: figure.label, series, height: 300,
        x: { label: "cases in the order in which they were measured", text: (value) => count(Math.round(value)), log: false },
        y: { label: figure.label, text: figure.text, log: false } });
      const there = FIGURES.filter(({ name }) => rows.some((row) => get(name, row) !== null));
      const heads = [["device", "text"], ["recipe or operator, kernels", "text words"], ["cases"], ...there.map(({ label }) => [label]), ["held back by", "text wrap"]];
      const lines = [...grouped(rows, (row) => get("device", row))].flatMap(([device, ofDevice]) => [...grouped(ofDevice, who)].map(([name, group]) =>
        [device, name, count(group.length), ...there.map(({ name: figure, text }) => { const found = values(group, figure); return found.length ? text(median(found)) : ""; }), held(group)]));
      place.append(table(heads, lines));
    },
  });
}
