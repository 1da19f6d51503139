// Tables with a row per group of cases, as described by `data.group_tables`: memory, operators, training, fusion, and clocks.
const AGGREGATES = {
  mean: (rows, column, format) => {
    const found = positive(rows, column);
    if (found.length === 0) return null;
    const isBound = rows.some((row) => (get(`${column}_bound`, row) ?? "exact") !== "exact"), mean = geometricMean(found);
    return [mean, `${isBound ? "≥ " : ""}${FORMATS[format](mean)}`];
  },
  median: (rows, column, format) => {
    const found = values(rows, column);
    return found.length === 0 ? null : [median(found), FORMATS[format](median(found))];
  },
  range: (rows, column, format) => {
    const found = values(rows, column);
    if (found.length === 0) return null;
    const [low, high] = [Math.min(...found), Math.max(...found)];
    return [high, [...new Set([low, high])].map(FORMATS[format]).join(" – ")];
  },
  words: (rows, column) => {
    const words = [...grouped(values(rows, column).flatMap((text) => text.split(", ")), (word) => word)];
    return words.length === 0 ? null : [0, words.map(([word, all]) => `${word} in ${cases(all.length)}`).join(", ")];
  },
};

function groupedCases(rows, { keys, pivot, pivots, figures }) {
  const all = pivot === null ? figures : pivots.flatMap((value) => figures.map(([heading, ...figure]) => [`${value}: ${heading}`, ...figure, value]));
  const lines = [...grouped(rows, (row) => joined(keys.map(([, column]) => get(column, row)), "\n")).values()].map((group) => ({
    names: keys.map(([, column]) => get(column, group[0]) ?? ""), cases: count(group.length),
    found: all.map(([, column, aggregate, format, value]) => AGGREGATES[aggregate](pivot === null ? group : group.filter((row) => get(pivot, row) === value), column, format)),
  }));
  const shown = all.map((_, index) => index).filter((index) => lines.some(({ found }) => found[index] !== null));
  return table([...keys.map(([heading]) => [heading, "text words"]), ["cases"], ...shown.map((index) => [all[index][0], headClass(all[index][2] === "mean", all[index][2] === "words")])],
    lines.map(({ names, cases, found }) => [...names, cases, ...shown.map((index) => figureCell(all[index][2] === "mean", found[index]))]), { class: "bars" });
}

function groupTable(id) {
  const model = data.group_tables.find((known) => known.id === id);
  if (model === undefined) return void unmeasured.push(id);
  const shown = new Set(model.cases);
  figure({ ...model, has: (row) => shown.has(row), draw: (rows, place) => place.replaceChildren(groupedCases(rows, model)) });
}

const headClass = (isRatio, isText) => isRatio ? "text" : isText ? "text words" : undefined;
// Cell of a value with its text, and with a bar if the value is a ratio.
const figureCell = (isRatio, found) => found === null ? "" : isRatio ? bar(...found) : found[1];
