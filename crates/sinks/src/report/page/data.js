"use strict";
// Records in columns, and values derived from a row.
const data = JSON.parse(document.getElementById("data").textContent);
const columns = new Map([...data.columns, ...data.derived_columns].map((column) => [column.name, column]));
const CASES = data.summary.cases;
const ALL_ROWS = Array.from({ length: CASES }, (_, row) => row);

function cell(column, row) {
  if (column.numbers) return column.numbers[row];
  const at = column.at[row];
  return at === null ? null : column.words[at];
}
function get(name, row) {
  const column = columns.get(name);
  return column === undefined ? null : cell(column, row);
}
const AXES = data.columns.filter((column) => column.kind === "axis").map((column) => column.name);

const isModel = (row) => ["inference", "training"].includes(get("mode", row));
const joined = (parts, between) => parts.filter((part) => part !== null && part !== "").join(between);
const isOk = (row) => get("status", row) === "ok";

// Rows that other rows are compared with.
const keyOf = (row, id) => `${get("run", row) ?? ""}\n${id}`;
const references = new Set(ALL_ROWS.filter((row) => get("speedup_vs", row) !== null).map((row) => keyOf(row, get("speedup_vs", row))));
// Cell as displayed: the speed-up of a reference is 1.
function displayed(column, row) {
  const value = cell(column, row);
  return value === null && column.name === "speedup" && isOk(row) && references.has(keyOf(row, get("id", row))) ? 1 : value;
}

function distinct(rows, read) {
  const found = new Set();
  for (const row of rows) {
    const value = read(row);
    if (value !== null && value !== "") found.add(value);
  }
  return [...found];
}
function grouped(rows, read) {
  const groups = new Map();
  for (const row of rows) {
    const key = read(row);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [row]); else group.push(row);
  }
  return groups;
}

const sum = (values) => values.reduce((total, value) => total + value, 0);
const geometricMean = (values) => Math.exp(sum(values.map(Math.log)) / values.length);
function median(values) {
  const sorted = [...values].sort((a, b) => a - b), middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
// Values of some rows that were measured.
function values(rows, name) {
  const column = columns.get(name);
  return column === undefined ? [] : rows.map((row) => cell(column, row)).filter((value) => value !== null);
}
const positive = (rows, name) => values(rows, name).filter((value) => value > 0);

// Number formats.
function digits(value, count = 4) {
  if (value === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(value)));
  if (size < -4) return value.toExponential(count - 1);
  return value.toLocaleString("en", { maximumFractionDigits: Math.max(0, count - 1 - size), useGrouping: size >= 4 });
}
function scaled(value, units) {
  let index = 0;
  // A value that rounds up to the next unit is written in that unit.
  while (index + 1 < units.length && Math.abs(value) >= units[index + 1][1] * 0.9995) index++;
  return `${digits(value / units[index][1], 3)} ${units[index][0]}`;
}
const letters = (value) => scaled(value, [["", 1], ["k", 1e3], ["M", 1e6], ["G", 1e9], ["T", 1e12], ["P", 1e15]]);
const operations = (value) => `${letters(value)}FLOP/s`;
const percent = (value) => `${digits(value, 3)} %`;
const count = (value) => value.toLocaleString("en");
const cases = (number) => number === 1 ? "1 case" : `${count(number)} cases`;
// Three significant digits, including zeros, so that columns align.
const times = (value) => `${value >= 999.5 || value < 1e-4 ? digits(value, 3) : Number(value).toPrecision(3)}×`;
const FORMATS = {
  ratio: times,
  time: (value) => scaled(value, [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]]),
  bytes: (value) => scaled(value, [["B", 1], ["KiB", 2 ** 10], ["MiB", 2 ** 20], ["GiB", 2 ** 30], ["TiB", 2 ** 40]]),
  percent, operations,
  share: (value) => percent(100 * value),
  gflops: (value) => operations(value * 1e9),
  tflops: (value) => operations(value * 1e12),
  gbps: (value) => `${letters(value * 1e9)}B/s`,
  size: (value) => letters(value).trim(),
  intensity: (value) => digits(value, 2),
  plain: (value) => digits(value, 3),
  decibels: (value) => `${digits(value, 3)} dB`,
  megahertz: (value) => `${digits(value)} MHz`,
  watts: (value) => `${digits(value, 3)} W`,
  celsius: (value) => `${digits(value, 3)} °C`,
  joules: (value) => scaled(value * 1e9, [["nJ", 1], ["µJ", 1e3], ["mJ", 1e6], ["J", 1e9]]),
};

// Format of a cell by the unit of its column.
const WRITTEN = { ns: "time", bytes: "bytes", "%": "percent", "10¹² operations/s": "tflops", "10⁹ bytes/s": "gbps", operations: "size" };
function written(column, row) {
  const value = displayed(column, row);
  if (value === null) return "";
  if (column.kind === "flag") return value ? "yes" : "no";
  if (column.kind !== "number") return String(value);
  if (column.name.startsWith("speedup") || column.name === "memory_saving") return times(value);
  if (WRITTEN[column.unit]) return FORMATS[WRITTEN[column.unit]](value);
  return column.unit ? `${digits(value)} ${column.unit}` : digits(value);
}
