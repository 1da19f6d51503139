// Comparison of calibration profiles: peaks, memory levels, operators, fusion.
function calibration() {
  const profiles = data.profiles.map(({ name, profile }) => ({ name, ...profile, label: profile.environment.hardware_name || name }));
  if (profiles.length === 0) return;
  // Profiles of one machine are distinguished by their file names.
  for (const same of grouped([...profiles], ({ label }) => label).values()) {
    for (const profile of same) if (same.length > 1) profile.label = `${profile.label} (${profile.name})`;
  }
  const heads = profiles.map(({ label }) => [label]);
  const more = profiles.slice(1).map(({ label }) => [`${label} over ${profiles[0].label}`, "text words"]);
  const keys = (name) => [...new Set(profiles.flatMap((profile) => Object.keys(profile[name] ?? {})))].sort();
  const rate = (unit, value) => unit === "GB/s" ? bytesPerSecond(value * 1e9) : operations(value * 1e9);
  const ratios = (found) => found.slice(1).map((value) => found[0] > 0 && value > 0 ? bar(value / found[0], times(value / found[0])) : "");

  const made = section("calibration", "Calibration", element("p", { class: "faint" },
    "Results of `calorimeter calibrate` on each machine. Ratios are relative to the first machine; above 1× is faster.".replaceAll("`", "")));
  made.append(table([["profile", "text"], ["device", "text"], ["driver", "text"], ["measured", "text"], ["calorimeter", "text"]],
    profiles.map(({ label, environment: { device, started, calorimeter } }) => [label, device?.name ?? "", device?.driver ?? "", (started ?? "").slice(0, 16).replace("T", " "), calorimeter ?? ""])));

  const peaks = keys("peaks").map((kind) => {
    const found = profiles.map((profile) => profile.peaks[kind]);
    const unit = found.find((peak) => peak !== undefined).unit;
    const shown = found.map((peak) => peak === undefined ? "" : [rate(unit, peak.measured), ...(peak.finding ? [element("div", { class: "faint" }, peak.finding)] : [])]);
    return [kind, ...shown, ...ratios(found.map((peak) => peak?.measured))];
  });
  if (peaks.length > 0) made.append(element("h3", {}, "Peaks"), table([["peak", "text"], ...heads, ...more], peaks, { class: "bars", id: "calibration-peaks" }));

  const levels = profiles.flatMap(({ label, cache_levels: levels }) => (levels ?? []).map((level) => [label, `${bytes(level.from_bytes)} – ${bytes(level.to_bytes)}`, bytesPerSecond(level.gbps * 1e9), level.kind]));
  if (levels.length > 0) made.append(element("h3", {}, "Memory levels, by working set of a copy"), table([["profile", "text"], ["working set", "text"], ["rate"], ["level", "text"]], levels));

  curves(made);

  const named = ({ operation_type: type, precision, implementation }) => `${type} · ${precision} · ${implementation}`;
  const all = profiles.map((profile) => Object.entries(profile.operation_profiles ?? {}));
  const best = (list, name) => {
    const own = list.filter(([, one]) => named(one) === name);
    const [flops, moved] = ["measured_gflops", "achieved_bandwidth_gbps"].map((figure) => Math.max(0, ...own.map(([, one]) => one[figure] ?? 0)));
    const share = Math.max(0, ...own.map(([, one]) => one.efficiency ?? 0));
    const failed = own.find(([, one]) => one.status !== "ok")?.[1];
    if (flops === 0 && moved === 0) return own.length === 0 ? "" : failed?.reason ?? time(1e6 * Math.min(...own.map(([, one]) => one.median_latency_ms ?? Infinity)));
    // FLOP/s or bytes/s, whichever is larger in units of 10⁹.
    return `${flops > moved ? operations(flops * 1e9) : bytesPerSecond(moved * 1e9)}${share > 0 ? `, ${percent(100 * share)}` : ""}`;
  };
  const faster = (name) => profiles.slice(1).map((_, index) => {
    const theirs = new Map(all[index + 1]);
    const both = all[0].filter(([key, one]) => named(one) === name && one.median_latency_ms > 0 && theirs.get(key)?.median_latency_ms > 0);
    const mean = both.length === 0 ? null : geometricMean(both.map(([key, one]) => one.median_latency_ms / theirs.get(key).median_latency_ms));
    return mean === null ? "" : bar(mean, `${times(mean)} of ${both.length === 1 ? "1 size" : `${both.length} sizes`}`);
  });
  const names = [...new Set(all.flat().map(([, one]) => named(one)))].sort();
  if (names.length > 0) made.append(element("h3", {}, "Operators: maximum rate over all sizes, and its share of the peak"),
    table([["operator · dtype · implementation", "text"], ...profiles.map(({ label }) => [label, "text words"]), ...more], names.map((name) => [name, ...all.map((list) => best(list, name)), ...faster(name)]), { class: "bars", id: "calibration-operators" }));

  const patterns = keys("fusion_profiles");
  const side = (one, name) => one[`unfused_${name}`] == null || one[`fused_${name}`] == null ? "" : [one[`unfused_${name}`], one[`fused_${name}`]];
  const pair = (values, write) => values === "" ? "" : `${write(values[0])} → ${write(values[1])}`;
  if (patterns.length > 0) made.append(element("h3", {}, "Fusion: unfused → fused"),
    table([["pattern", "text words"], ...(profiles.length > 1 ? [["profile", "text words"]] : []), ["kernels per pass", "text"], ["bytes", "text"], ["time", "text"], ["speed-up", "text"]],
      patterns.flatMap((key) => profiles.filter((profile) => profile.fusion_profiles?.[key]).map((profile) => {
        const one = profile.fusion_profiles[key];
        return [key, ...(profiles.length > 1 ? [profile.label] : []), pair(side(one, "launches"), (value) => digits(value, 3)), pair(side(one, "bytes"), bytes), pair(side(one, "latency_ms"), (value) => time(1e6 * value)),
          one.speedup_factor == null ? one.reason ?? one.status : bar(one.speedup_factor, times(one.speedup_factor))];
      })), { class: "bars" }));

  const remarks = profiles.flatMap(({ label, notes, not_measured: missing }) => [...(notes ?? []), ...Object.entries(missing ?? {}).map(([what, why]) => `${what} not measured: ${why}`)].map((text) => `${label}: ${text}`));
  if (remarks.length > 0) made.append(element("h3", {}, "Notes"), element("ul", {}, ...remarks.map((text) => element("li", {}, text))));

  // Rate of an operator over bytes moved, one line per profile.
  function curves(made) {
    const list = keys("efficiency_curves").filter((key) => profiles.some((profile) => profile.efficiency_curves[key]?.some(({ bytes }) => bytes > 0)));
    if (list.length === 0) return;
    // The operator with most sizes is selected initially.
    const sizes = (key) => Math.max(...profiles.map((profile) => profile.efficiency_curves[key]?.length ?? 0));
    const usual = [...list].sort((a, b) => sizes(b) - sizes(a))[0];
    const place = element("div", { class: "place" });
    const draw = (key) => {
      const points = profiles.flatMap((profile) => profile.efficiency_curves[key] ?? []);
      const ofFlops = points.some(({ gflops }) => gflops > 0) && !points.every(({ gbps }) => gbps > 0);
      const figure = ofFlops ? ["gflops", "operations per second", operations] : ["gbps", "bytes per second", bytesPerSecond];
      const series = profiles.map((profile, index) => ({ name: profile.label, color: `s${index % 8}`, form: MARKERS[index % MARKERS.length],
        points: (profile.efficiency_curves[key] ?? []).filter((point) => point.bytes > 0 && point[figure[0]] > 0).map((point) => ({ x: point.bytes, y: point[figure[0]] * 1e9,
          tip: () => [profile.label, point.shape, figure[2](point[figure[0]] * 1e9), point.efficiency == null ? "" : `${percent(100 * point.efficiency)} of the peak`] })) })).filter(({ points }) => points.length > 0);
      place.replaceChildren();
      if (series.length > 0) chart(place, Math.max(place.clientWidth, 320), { title: key, series, lines: true,
        x: { label: "bytes per pass", text: (value) => `${letters(value)}B`, log: true }, y: { label: figure[1], text: figure[2], log: true } });
    };
    const choice = chooser("operator", list.map((key) => [key, key]), usual, draw);
    choice.list.id = "calibration-curve";
    made.append(element("h3", {}, "Against size"), element("div", { class: "controls" }, choice.label), place);
    draw(usual);
  }
}
