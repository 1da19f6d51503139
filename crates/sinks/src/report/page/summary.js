// Summary: status counts and mean speed-ups.
function summarySection() {
  if (CASES === 0) return;
  const { statuses, means } = data.summary;
  const tiles = statuses.map(([status, number]) => element("div", { class: "tile" }, element("b", {}, count(number)), status));
  const parts = [element("div", { class: "tiles" }, ...tiles)];
  const planned = sum(data.runs.map((run) => run.planned ?? run.cases));
  if (planned > CASES) parts.push(element("p", {}, `The plan had ${cases(planned)}: ${count(planned - CASES)} are unfinished.`));
  if (means.length > 0) {
    const differ = ["device", "dtype", "regime"].filter((name) => new Set(means.map((mean) => mean[name])).size > 1);
    const several = data.runs.length > 1;
    const heads = [["recipe or operator", "text words"], ["implementation", "text"], ...(several ? [["run", "text"]] : []),
      ...differ.map((name) => [name, "text"]), ["cases"], ["geometric mean", "text"], ["verdicts", "text"], ["best", "shape"], ["worst", "shape"]];
    const extreme = ({ row, ratio, shape }) => [`${times(ratio)} `, opener(row, shape)];
    const verdicts = (mean) => mean.verdicts.flatMap(([verdict, number], index) => [index > 0 ? ", " : "", element("span", { class: verdict.toLowerCase() }, `${count(number)} ${verdict}`)]);
    const rows = means.map((mean) => [mean.recipe, mean.implementation, ...(several ? [data.runs[mean.run].name] : []),
      ...differ.map((name) => mean[name]), count(mean.cases), bar(mean.ratio, mean.lo === undefined ? times(mean.ratio) : `${times(mean.ratio)} [${times(mean.lo)}, ${times(mean.hi)}]`),
      verdicts(mean), extreme(mean.best), mean.cases > 1 ? extreme(mean.worst) : ""]);
    const same = ["device", "dtype", "regime"].filter((name) => !differ.includes(name)).map((name) => means[0][name]);
    parts.push(element("h3", {}, "Speed-up over the baseline"),
      element("p", { class: "faint" }, `Geometric mean over the shapes, with 95 % interval from five cases on${same.length ? `; ${same.join(", ")}` : ""}. Above 1× is faster. The filter does not affect this table.`),
      table(heads, rows, { class: "bars" }));
  }
  section("summary", "Summary", ...parts);
}

function failureSection() {
  const { causes, warnings } = data.summary;
  if (causes.length + warnings.length === 0) return;
  const made = section("reasons", "Missing times and warnings");
  if (causes.length > 0) {
    const rows = causes.map(({ status, reason, cases, examples }) =>
      [status, count(cases), reason, element("span", { class: "id" }, examples.join(", ") + (cases > examples.length ? ", …" : ""))]);
    made.append(table([["status", "text"], ["cases"], ["reason", "text wrap"], ["cases by id", "text wrap"]], rows));
  } else {
    made.append(element("p", {}, "Every case was measured."));
  }
  if (warnings.length > 0) {
    made.append(element("h3", {}, "Warnings"), table([["cases"], ["warning", "text wrap"]], warnings.map(([text, number]) => [count(number), text])));
  }
}
