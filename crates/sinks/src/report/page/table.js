// Table of all cases, with selectable columns and order.
function casesTable() {
  const PAGE = 100;
  const constant = (name) => distinct(ALL_ROWS, (row) => get(name, row)).length < 2;
  const usual = ["workload", "recipe", "sparsity", "scaling", "implementation", "device", "dtype", "shape", "regime", "time_ns", "speedup", "verdict", "tflops", "gbps", "roofline_percent", "sqnr_db", "weight_bytes", "peak_bytes", "status"];
  const dispensable = ["device", "dtype", "regime", "workload", "implementation"];
  const shown = new Set(usual.filter((name) => columns.has(name) && !(dispensable.includes(name) && constant(name))));
  if (data.runs.length > 1) shown.add("run");
  // Labels of columns whose name contains a unit other than the one displayed.
  const LABELS = { time_ns: "time", speedup: "speed-up", tflops: "operations/s", gbps: "bytes/s", roofline_percent: "of the peak", sqnr_db: "SQNR", weight_bytes: "weights", peak_bytes: "peak memory" };
  let order = { name: null, up: true }, first = 0;
  let place;

  const listed = () => data.columns.filter(({ name, kind }) => shown.has(name) && kind !== "link");
  // Unmeasured cases are last in both directions.
  const sorted = (rows) => {
    const column = columns.get(order.name);
    if (column === undefined) return rows;
    const compare = column.numbers ? (a, b) => a - b : (a, b) => a.localeCompare(b, "en", { numeric: true });
    const [present, absent] = [rows.filter((row) => displayed(column, row) !== null), rows.filter((row) => displayed(column, row) === null)];
    present.sort((a, b) => compare(displayed(column, a), displayed(column, b)) * (order.up ? 1 : -1));
    return [...present, ...absent];
  };
  const precision = (row) => {
    const [lo, hi, median] = ["time_ns_lo", "time_ns_hi", "time_ns"].map((name) => get(name, row));
    return lo === null || hi === null ? "" : ` ±${digits(50 * (hi - lo) / median, 2)} %`;
  };
  const drawRow = (row) => element("tr", {}, element("td", { class: "text" }, element("button", { type: "button", class: "link", "aria-label": `Details of ${get("id", row)}`, onclick: () => openRecord(row) }, "details")),
    ...listed().map((column) => {
      const text = written(column, row) + (column.name === "time_ns" && get("time_ns", row) !== null ? precision(row) : "");
      const verdict = column.name === "verdict" ? ` ${text.toLowerCase()}` : "";
      return element("td", { class: column.words ? `text${verdict}` : undefined }, text.length > 80 ? `${text.slice(0, 79)}…` : text);
    }), element("td", { class: "text" }, ...links(row).flatMap((file) => [file, " "])));

  const draw = (rows) => {
    const all = sorted(rows);
    first = Math.min(first, Math.floor((all.length - 1) / PAGE) * PAGE);
    const again = () => draw(rows);
    const head = element("tr", {}, element("th", { scope: "col" }, ""), ...listed().map(({ name, doc, words }) => {
      const own = order.name === name;
      const sort = element("button", { type: "button", "data-sort": name, onclick: () => { order = { name, up: own ? !order.up : true }; first = 0; again(); place.querySelector(`[data-sort="${CSS.escape(name)}"]`).focus(); } },
        `${LABELS[name] ?? name} ${own ? (order.up ? "▲" : "▼") : ""}`);
      return element("th", { scope: "col", title: `${name}: ${doc}`, class: words ? "text" : undefined, "aria-sort": own ? (order.up ? "ascending" : "descending") : "none" }, sort);
    }), element("th", { scope: "col", class: "text" }, ALL_ROWS.some((row) => links(row).length) ? "files" : ""));
    const pageButton = (by, text, possible) => element("button", { type: "button", disabled: possible ? undefined : "", onclick: () => { first += by; again(); } }, text);
    const last = Math.min(first + PAGE, all.length);
    place.replaceChildren(element("div", { class: "scroll" }, element("table", { id: "cases-table" }, element("thead", {}, head), element("tbody", {}, ...all.slice(first, last).map(drawRow)))),
      element("div", { class: "controls" }, pageButton(-PAGE, "Previous", first > 0), pageButton(PAGE, "Next", last < all.length),
        element("span", { class: "faint" }, `${count(first + 1)} to ${count(last)} of ${count(all.length)}`)));
  };

  figure({
    id: "cases", title: "All cases", has: () => true,
    lead: "Press a heading to sort, again to reverse. Unmeasured cases are last. “details” shows all values of a case and the distribution of its window times.",
    controls: (_, again) => {
      const boxes = data.columns.filter(({ kind }) => kind !== "link").map(({ name, doc }) => element("label", { class: "check", title: doc },
        filled(element("input", { type: "checkbox", checked: shown.has(name) ? "" : undefined }), { onchange: (event) => { if (event.target.checked) shown.add(name); else shown.delete(name); again(); } }, []), name));
      return [element("details", {}, element("summary", {}, "Columns"), element("div", { class: "columns" }, ...boxes))];
    },
    draw: (rows, where) => { place = where; draw(rows); },
  });
}

// Theme of the system until the user selects one.
function themes() {
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  let own = null;
  const apply = () => {
    const dark = own ?? system.matches;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    button.textContent = dark ? "Light" : "Dark";
    button.setAttribute("aria-label", `Change to ${dark ? "light" : "dark"} colors`);
  };
  button.addEventListener("click", () => { own = document.documentElement.dataset.theme !== "dark"; apply(); });
  system.addEventListener("change", apply);
  apply();
}

themes();
const runNames = data.runs.map((run) => run.name).join(", ");
document.title = `Calorimeter report: ${runNames}`;
runHeads();
filterBar();
forest();
summarySection();
heatMap();
roofline();
sizes();
accuracy();
groupTable("memory");
groupTable("operators");
groupTable("training");
groupTable("fusion");
clocks();
calibration();
casesTable();
failureSection();
machineSection();
