// Filter of the rows that the page shows.
const FILTERS = data.filters.map(([name, label]) => ({ name, label, options: distinct(ALL_ROWS, (row) => get(name, row)) })).filter(({ options }) => options.length > 1);

function filterBar() {
  if (CASES === 0) return;
  const chosen = new Map();
  let words = [];
  const status = element("span", { role: "status", id: "chosen" });
  const apply = () => {
    const passes = (row) => FILTERS.every(({ name }) => !chosen.has(name) || get(name, row) === chosen.get(name))
      && (words.length === 0 || words.every((word) => get("id", row).toLowerCase().includes(word)));
    choose(ALL_ROWS.filter(passes));
    status.textContent = shownRows.length === CASES ? cases(CASES) : `${count(shownRows.length)} of ${cases(CASES)}`;
  };
  const lists = FILTERS.map(({ name, label, options }) => {
    const every = [["", "all"], ...options.map((option) => [option, option])];
    const made = chooser(label, every, "", (value) => {
      if (value === "") chosen.delete(name); else chosen.set(name, value);
      apply();
    });
    made.list.id = `filter-${label}`;
    return made;
  });
  const search = element("input", { type: "search", id: "filter-id", size: 16, oninput: () => {
    words = search.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
    apply();
  } });
  const clear = element("button", { type: "button", onclick: () => {
    for (const { list } of lists) list.value = "";
    search.value = "";
    chosen.clear();
    words = [];
    apply();
  } }, "Show all");
  main.append(element("div", { id: "filter", role: "search", "aria-label": "Selection of cases" },
    element("div", { class: "controls" }, ...lists.map(({ label }) => label), element("label", {}, "words in the id", search), clear, status)));
  status.textContent = cases(CASES);
}
