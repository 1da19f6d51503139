// Sections of the page, and figures, which are drawn when they become visible and redrawn when the filter changes.
const main = document.querySelector("main");
const navigation = document.getElementById("sections");
const unmeasured = [];
let shownRows = ALL_ROWS;

function section(id, title, ...children) {
  const made = element("section", { id, "aria-labelledby": `${id}-title` }, element("h2", { id: `${id}-title` }, title), ...children);
  main.append(made);
  navigation.append(element("a", { href: `#${id}` }, title));
  return made;
}

// Figures by their observed element.
const watched = new Map();
const inSight = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    const figure = watched.get(target);
    figure.visible = isIntersecting;
    if (isIntersecting) refresh(figure);
  }
}, { rootMargin: "300px" });
const widths = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const figure = watched.get(target.parentElement);
    if (figure.drawnAt !== target.clientWidth) outdate(figure);
  }
});
function refresh(figure) {
  // Without layout the width is zero.
  if (!figure.visible || !figure.stale || figure.place.clientWidth === 0) return;
  figure.stale = false;
  figure.drawnAt = figure.place.clientWidth;
  const rows = shownRows.filter(figure.has);
  if (rows.length > 0) figure.draw(rows, figure.place, figure.drawnAt);
  else figure.place.replaceChildren(element("p", { class: "faint" }, "No data for the selected cases."));
}
function outdate(figure) {
  figure.stale = true;
  refresh(figure);
}
function choose(rows) {
  shownRows = rows;
  for (const figure of watched.values()) outdate(figure);
}

// `has` selects the rows of the figure; the section is omitted if there are none.
function figure({ id, title, lead, has, controls = () => [], draw }) {
  const rows = ALL_ROWS.filter(has);
  if (rows.length === 0) return void unmeasured.push(title.toLowerCase());
  const place = element("div", { class: "place" });
  const made = { has, draw, place, stale: true, visible: false, drawnAt: 0 };
  const chosen = controls(rows, () => outdate(made));
  const whole = section(id, title, element("p", { class: "faint" }, lead), chosen.length ? element("div", { class: "controls" }, ...chosen) : null, place);
  watched.set(whole, made);
  inSight.observe(whole);
  widths.observe(place);
}

// Draw everything before printing.
window.addEventListener("beforeprint", () => {
  for (const figure of watched.values()) { figure.visible = true; refresh(figure); }
});
