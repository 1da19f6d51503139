// Tables with a line for each recipe or operator: memory, operators, fusion, and training with the passes side by side.
const several = (rows, name, write) => {
  const found = values(rows, name);
  if (found.length === 0) return "";
  const [low, high] = [Math.min(...found), Math.max(...found)];
  return low === high ? write(low) : `${write(low)} – ${write(high)}`;
};
const meanOf = (ratios) => ratios.length === 0 ? "" : bar(geometricMean(ratios), times(geometricMean(ratios)));

function memory() {
  const weights = (row) => get("weight_bytes", row) > 0 && get("baseline_weight_bytes", row) > 0;
  const peak = (row) => get("peak_bytes", row) !== null;
  figure({
    id: "memory", title: "Memory",
    lead: "How many times smaller than those of the baseline: stored weights with their scales, and the peak of the memory in use. ≥ marks a mean in which some savings are lower bounds.",
    has: (row) => isOk(row) && (weights(row) || (isModel(row) && peak(row)) || get("memory_saving", row) !== null),
    draw: (rows, place) => {
      const lines = [...grouped(rows, who)].map(([name, group]) => {
        const smaller = group.filter(weights).map((row) => get("baseline_weight_bytes", row) / get("weight_bytes", row));
        const savings = positive(group, "memory_saving");
        const bound = group.some((row) => get("memory_saving", row) !== null && get("memory_saving_bound", row) !== "exact");
        const peaks = meanOf(savings);
        return [name, count(group.length), meanOf(smaller), several(group.filter(weights), "weight_bytes", bytes),
          peaks === "" ? "" : bound ? [peaks[0], `≥ ${peaks[1]}`] : peaks, several(group, "peak_bytes", bytes)];
      });
      place.replaceChildren(table([["recipe or operator, kernels", "text words"], ["cases"], ["weights smaller", "text"], ["weights"], ["peak smaller", "text"], ["peak"]], lines, { class: "bars" }));
    },
  });
}

function operators() {
  figure({
    id: "operators", title: "Operators",
    lead: "The mean speed-up over eager, or over the first of programs that are not ours, and the middle rate and share of the roof, over all sizes and types of an operator.",
    has: (row) => isOk(row) && !isModel(row) && get("mode", row) !== "fusion" && get("time_ns", row) > 0,
    draw: (rows, place) => {
      const middle = (write) => (found) => found.length ? write(median(found)) : "";
      const figures = [["speedup", "speed-up", "text", meanOf], ["gbps", "bytes/s", "", middle((value) => bytesPerSecond(value * 1e9))], ["roofline_percent", "of the roof", "", middle(percent)]];
      const kernels = distinct(rows, (row) => get("implementation", row));
      const by = kernels.flatMap((kernel) => figures.map(([name, label, kind, write]) => ({ kernel, name, label, kind, write })))
        .filter(({ kernel, name }) => rows.some((row) => get("implementation", row) === kernel && get(name, row) > 0));
      const heads = [["operator", "text"], ["suite", "text"], ["cases"], ...by.map(({ kernel, label, kind }) => [`${kernel}: ${label}`, kind])];
      const lines = [...grouped(rows, (row) => get("workload", row))].map(([name, group]) => [name, get("mode", group[0]), count(group.length),
        ...by.map(({ kernel, name, write }) => write(positive(group.filter((row) => get("implementation", row) === kernel), name)))]);
      place.replaceChildren(table(heads, lines, { class: "bars" }));
    },
  });
}

function training() {
  // In the order in which a step has them.
  const ORDER = ["_forward", "_backward", "_forward_backward", "_adamw", "_sgd", "_adamw_step", "_sgd_step"];
  const place = (row) => ORDER.findLastIndex((end) => get("workload", row).endsWith(end));
  const model = (row) => get("workload", row).slice(0, get("workload", row).length - (ORDER[place(row)] ?? "").length);
  const called = (place) => (ORDER[place] ?? "_pass").slice(1);
  figure({
    id: "training", title: "Training",
    lead: "The middle time of each pass, and the mean speed-up over the same pass of the baseline, for each model and shape.",
    has: (row) => get("mode", row) === "training" && isOk(row) && get("time_ns", row) > 0,
    draw: (rows, where) => {
      const passes = distinct(rows, place).sort((a, b) => a - b);
      const heads = [["model", "text"], ["shape", "text"], ["recipe, kernels", "text words"], ...passes.flatMap((pass) => [[called(pass)], ["speed-up", "text"]])];
      const lines = [...grouped(rows, (row) => `${model(row)} ${get("shape", row)}`).values()].flatMap((ofShape) =>
        [...grouped(ofShape, who)].map(([name, group]) => [model(group[0]), get("shape", group[0]), name, ...passes.flatMap((pass) => {
          const own = group.filter((row) => place(row) === pass);
          return own.length ? [time(median(values(own, "time_ns"))), meanOf(positive(own, "speedup"))] : ["", ""];
        })]));
      where.replaceChildren(table(heads, lines, { class: "bars" }));
    },
  });
}

function fusion() {
  figure({
    id: "fusion", title: "Fusion",
    lead: "Whether fewer kernels ran than a pattern has operators, what that bought, and what the bytes that it saves would buy.",
    has: (row) => get("fusion_state", row) !== null || get("mode", row) === "fusion",
    draw: (rows, place) => {
      const lines = [...grouped(rows, who)].map(([name, group]) => {
        const measured = group.filter(isOk), told = values(measured, "fusion_state");
        const possible = group.filter((row) => get("fused_bytes", row) > 0).map((row) => get("unfused_bytes", row) / get("fused_bytes", row));
        const unfused = get("implementation", group[0]) === "eager" ? "each operator by itself" : "not told";
        const state = told.length === 0 ? (measured.length ? unfused : distinct(group, (row) => get("status", row)).join(", "))
          : `fused in ${count(told.filter((state) => state === "fused").length)} of ${count(told.length)}`;
        return [name, count(group.length), state, several(measured, "kernel_launches", (value) => digits(value, 3)),
          several(group, "unfused_bytes", bytes), several(group, "fused_bytes", bytes), meanOf(positive(measured, "speedup")), possible.length ? times(geometricMean(possible)) : ""];
      });
      place.replaceChildren(table([["pattern, kernels", "text words"], ["cases"], ["state", "text"], ["kernels in a pass"], ["bytes unfused"], ["bytes fused"], ["speed-up", "text"], ["bytes allow"]], lines, { class: "bars" }));
    },
  });
}
