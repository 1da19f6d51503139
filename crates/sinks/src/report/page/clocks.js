// Clock, power, temperature and throttling of the cases.
function clocks() {
  const FIGURES = [
    { name: "clock_mhz", label: "clock", text: (value) => `${digits(value)} MHz` },
    { name: "memory_clock_mhz", label: "memory clock", text: (value) => `${digits(value)} MHz` },
    { name: "power_w", label: "power", text: (value) => `${digits(value, 3)} W` },
    { name: "temperature_c", label: "temperature", text: (value) => `${digits(value, 3)} °C` },
    { name: "held_back", label: "throttled windows", text: (value) => percent(100 * value) },
    { name: "joules", label: "energy per pass", text: (value) => scaled(value * 1e9, [["nJ", 1], ["µJ", 1e3], ["mJ", 1e6], ["J", 1e9]]) },
  ];
  const chosen = { y: null };
  const started = (row) => get("started", row) ?? "";
  const throttleReasons = (rows) => {
    const reasons = rows.flatMap((row) => (get("throttle", row) ?? "").split(", ")).filter((reason) => reason !== "");
    return [...grouped(reasons, (reason) => reason)].map(([reason, all]) => `${reason} in ${cases(all.length)}`).join(", ");
  };
  figure({
    id: "clocks", title: "Clocks and power",
    lead: "Median sample of the device's sensors during each case. Table: median over the cases, and throttle reasons.",
    has: (row) => isOk(row) && FIGURES.some(({ name }) => get(name, row) !== null),
    controls: (rows, again) => {
      const available = FIGURES.filter(({ name }) => rows.some((row) => get(name, row) !== null));
      chosen.y = available[0].name;
      const made = chooser("metric", available.map(({ name, label }) => [name, label]), chosen.y, (value) => { chosen.y = value; again(); });
      made.list.id = "clocks-figure";
      return [made.label];
    },
    draw: (rows, place, width) => {
      const figure = FIGURES.find(({ name }) => name === chosen.y);
      const order = new Map([...rows].sort((a, b) => started(a).localeCompare(started(b), "en")).map((row, index) => [row, index + 1]));
      place.replaceChildren();
      const series = seriesOf(rows.filter((row) => get(chosen.y, row) !== null), (row) => ({ x: order.get(row), y: get(chosen.y, row), row,
        tip: () => [get("id", row), `${figure.label}: ${figure.text(get(chosen.y, row))}`, get("throttle", row) === null ? "" : `throttled by ${get("throttle", row)}`] }));
      if (series.length > 0) chart(place, width, { title: figure.label, series, height: 300,
        x: { label: "cases in order of measurement", text: (value) => count(Math.round(value)), log: false },
        y: { label: figure.label, text: figure.text, log: false } });
      const available = FIGURES.filter(({ name }) => rows.some((row) => get(name, row) !== null));
      const heads = [["device", "text"], ["recipe or operator, implementation", "text words"], ["cases"], ...available.map(({ label }) => [label]), ["throttled by", "text wrap"]];
      const lines = [...grouped(rows, (row) => get("device", row))].flatMap(([device, ofDevice]) => [...grouped(ofDevice, itemAndImplementation)].map(([name, group]) =>
        [device, name, count(group.length), ...available.map(({ name: figure, text }) => { const found = values(group, figure); return found.length ? text(median(found)) : ""; }), throttleReasons(group)]));
      place.append(table(heads, lines));
    },
  });
}
