// Tables with a line per recipe or operator: memory, operators, fusion, and training passes.
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
    lead: "Savings relative to the baseline: stored weights with their scales, and peak memory. ≥ marks a mean that includes lower bounds.",
    has: (row) => isOk(row) && (weights(row) || (isModel(row) && peak(row)) || get("memory_saving", row) !== null),
    draw: (rows, place) => {
      const lines = [...grouped(rows, itemAndImplementation)].map(([name, group]) => {
        const smaller = group.filter(weights).map((row) => get("baseline_weight_bytes", row) / get("weight_bytes", row));
        const savings = positive(group, "memory_saving");
        const bound = group.some((row) => get("memory_saving", row) !== null && get("memory_saving_bound", row) !== "exact");
        const peaks = meanOf(savings);
        return [name, count(group.length), meanOf(smaller), several(group.filter(weights), "weight_bytes", bytes),
          peaks === "" ? "" : bound ? [peaks[0], `≥ ${peaks[1]}`] : peaks, several(group, "peak_bytes", bytes)];
      });
      place.replaceChildren(table([["recipe or operator, implementation", "text words"], ["cases"], ["weight saving", "text"], ["weights"], ["peak saving", "text"], ["peak"]], lines, { class: "bars" }));
    },
  });
}

function operators() {
  figure({
    id: "operators", title: "Operators",
    lead: "Mean speed-up over eager, or over the first program of foreign work; median rate and median share of the peak; over all sizes and dtypes of an operator.",
    has: (row) => isOk(row) && !isModel(row) && get("mode", row) !== "fusion" && get("time_ns", row) > 0,
    draw: (rows, place) => {
      const middle = (write) => (found) => found.length ? write(median(found)) : "";
      const figures = [["speedup", "speed-up", "text", meanOf], ["gbps", "bytes/s", "", middle((value) => bytesPerSecond(value * 1e9))], ["roofline_percent", "of the peak", "", middle(percent)]];
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
  // In the order of a training step.
  const ORDER = ["_forward", "_backward", "_forward_backward", "_adamw", "_sgd", "_adamw_step", "_sgd_step"];
  const place = (row) => ORDER.findLastIndex((end) => get("workload", row).endsWith(end));
  const model = (row) => get("workload", row).slice(0, get("workload", row).length - (ORDER[place(row)] ?? "").length);
  const passName = (place) => (ORDER[place] ?? "_pass").slice(1);
  figure({
    id: "training", title: "Training",
    lead: "Median time of each pass, and mean speed-up over the pass of the baseline, for each model and shape.",
    has: (row) => get("mode", row) === "training" && isOk(row) && get("time_ns", row) > 0,
    draw: (rows, where) => {
      const passes = distinct(rows, place).sort((a, b) => a - b);
      const heads = [["model", "text"], ["shape", "text"], ["recipe, implementation", "text words"], ...passes.flatMap((pass) => [[passName(pass)], ["speed-up", "text"]])];
      const lines = [...grouped(rows, (row) => `${model(row)} ${get("shape", row)}`).values()].flatMap((ofShape) =>
        [...grouped(ofShape, itemAndImplementation)].map(([name, group]) => [model(group[0]), get("shape", group[0]), name, ...passes.flatMap((pass) => {
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
    lead: "Fused if fewer kernels ran than the pattern has operators; the resulting speed-up, and its upper bound from the bytes saved.",
    has: (row) => get("fusion_state", row) !== null || get("mode", row) === "fusion",
    draw: (rows, place) => {
      const lines = [...grouped(rows, itemAndImplementation)].map(([name, group]) => {
        const measured = group.filter(isOk), states = values(measured, "fusion_state");
        const possible = group.filter((row) => get("fused_bytes", row) > 0).map((row) => get("unfused_bytes", row) / get("fused_bytes", row));
        const unfused = get("implementation", group[0]) === "eager" ? "one kernel per operator" : "unknown";
        const state = states.length === 0 ? (measured.length ? unfused : distinct(group, (row) => get("status", row)).join(", "))
          : `fused in ${count(states.filter((state) => state === "fused").length)} of ${count(states.length)}`;
        return [name, count(group.length), state, several(measured, "kernel_launches", (value) => digits(value, 3)),
          several(group, "unfused_bytes", bytes), several(group, "fused_bytes", bytes), meanOf(positive(measured, "speedup")), possible.length ? times(geometricMean(possible)) : ""];
      });
      place.replaceChildren(table([["pattern, implementation", "text words"], ["cases"], ["state", "text"], ["kernels per pass"], ["bytes unfused"], ["bytes fused"], ["speed-up", "text"], ["bound from bytes"]], lines, { class: "bars" }));
    },
  });
}
