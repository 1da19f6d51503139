// Tables with a row per group of cases, as described by `data.group_tables`: memory, operators, training, fusion, and clocks.
const AGGREGATES = {
  geometric_mean: (rows, { column, format, bound }) => {
    const found = positive(rows, column);
    if (found.length === 0) return null;
    const isBound = bound !== null && rows.some((row) => (get(bound, row) ?? "exact") !== "exact"), mean = geometricMean(found);
    return [mean, `${isBound ? "≥ " : ""}${FORMATS[format](mean)}`];
  },
  median: (rows, { column, format }) => {
    const found = values(rows, column);
    return found.length === 0 ? null : [median(found), FORMATS[format](median(found))];
  },
  range: (rows, { column, format }) => {
    const found = values(rows, column);
    if (found.length === 0) return null;
    const [low, high] = [Math.min(...found), Math.max(...found)];
    return [high, [...new Set([low, high])].map(FORMATS[format]).join(" – ")];
  },
  words: (rows, { column }) => {
    const words = [...grouped(values(rows, column).flatMap((text) => text.split(", ")), (word) => word)];
    return words.length === 0 ? null : [0, words.map(([word, all]) => `${word} in ${cases(all.length)}`).join(", ")];
  },
};

function groupedCases(rows, { keys, pivot, pivots, figures }) {
  const all = pivot === null ? figures : pivots.flatMap((value) => figures.map((figure) => ({ ...figure, heading: `${value}: ${figure.heading}`, value })));
  const lines = [...grouped(rows, (row) => joined(keys.map(([, column]) => get(column, row)), "\n")).values()].map((group) => ({
    names: keys.map(([, column]) => get(column, group[0]) ?? ""), cases: count(group.length),
    found: all.map((figure) => AGGREGATES[figure.aggregate](pivot === null ? group : group.filter((row) => get(pivot, row) === figure.value), figure)),
  }));
  const shown = all.map((_, index) => index).filter((index) => lines.some(({ found }) => found[index] !== null));
  return table([...keys.map(([heading]) => [heading, "text words"]), ["cases"], ...shown.map((index) => [all[index].heading, headClass(all[index].bar, all[index].aggregate === "words")])],
    lines.map(({ names, cases, found }) => [...names, cases, ...shown.map((index) => figureCell(all[index].bar, found[index]))]), { class: "bars" });
}

function groupTable(id) {
  const model = data.group_tables.find((known) => known.id === id);
  if (model === undefined) return void unmeasured.push(id);
  const shown = new Set(model.cases);
  figure({ ...model, has: (row) => shown.has(row), draw: (rows, place) => place.replaceChildren(groupedCases(rows, model)) });
}

const headClass = (length, isText) => length === "ratio" ? "text" : isText ? "text words" : undefined;
// Cell of a value with its text, and with a bar if the value is a ratio.
const figureCell = (length, found) => found === null ? "" : length === "ratio" ? bar(...found) : found[1];
