// Device, dtypes, date, command and configuration of the first runs, at the head of the page.
function runHeads() {
  const MAX_RUNS = 3, head = document.getElementById("of");
  for (const { name, devices, dtypes, started, command, configs } of data.runs.slice(0, MAX_RUNS)) {
    const entries = [["Run", name], ["Device", devices.join("; ")], ["Dtype", dtypes.join(", ")], ["Started", started], ["Command", command],
      ["Configuration", configs.join(", ")]];
    head.append(element("dl", {}, ...entries.filter(([, text]) => text).flatMap(([label, text]) => [element("dt", {}, label), element("dd", {}, text)])));
  }
  if (data.runs.length > MAX_RUNS) head.append(element("p", { class: "faint" }, `and ${data.runs.length - MAX_RUNS} more runs: see Environment`));
}

// Provenance of the runs.
function facts(value, name = "") {
  if (value === null || value === undefined || value === "") return [];
  if (Array.isArray(value) && value.every((part) => typeof part !== "object")) return value.length ? [[name, value.join(", ")]] : [];
  if (typeof value !== "object") return [[name, String(value)]];
  return Object.entries(value).flatMap(([key, part]) => facts(part, name === "" ? key : `${name} ${key}`));
}

function machineSection() {
  const made = section("machine", "Environment");
  for (const run of data.runs) {
    const list = element("dl");
    const environment = { ...run.environment };
    const devices = environment.devices ?? [];
    delete environment.devices;
    const entries = [["started", run.started], ["resumed", run.resumed.join(", ")], ["command", run.command], ["dtypes", run.dtypes.join(", ")], ["run", run.id],
      ...facts(environment), ...devices.flatMap((device) => facts({ ...device, device: undefined }, device.device))];
    for (const [name, text] of entries) if (text) list.append(element("dt", {}, name), element("dd", {}, text));
    const panel = element("div", { class: "panel" }, element("h3", {}, run.name), list);
    if (run.started === null) panel.append(element("p", { class: "faint" }, "No provenance: a Parquet file without its journal."));
    for (const { path, text, cut } of run.sources) {
      panel.append(element("details", {}, element("summary", {}, path), element("pre", {}, cut ? `${text}\n… truncated; the journal has the whole file` : text)));
    }
    made.append(panel);
  }
  if (unmeasured.length > 0) made.append(element("p", { class: "faint" }, `Not in these records: ${unmeasured.join(", ")}.`));
}
