// All text from the records is inserted by these functions, as text nodes or attributes only.
function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}
const SVG = document.getElementById("svg").namespaceURI;
function shape(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}
function filled(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value); else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// Drop-down list; `options` are pairs of value and text.
function chooser(label, options, chosen, changed) {
  const list = element("select", { onchange: () => changed(list.value) });
  for (const [value, text] of options) list.append(element("option", { value }, text));
  list.value = chosen;
  return { list, label: element("label", {}, label, list) };
}

function table(heads, rows, attributes = {}) {
  const head = element("tr", {}, ...heads.map(([text, kind]) => element("th", { scope: "col", class: kind }, text)));
  const line = (cells) => element("tr", {}, ...cells.map((content, index) => {
    const made = element("td", { class: heads[index][1] });
    made.append(...[content].flat().filter((part) => part !== null));
    return made;
  }));
  return element("div", { class: "scroll" },
    element("table", attributes, element("thead", {}, head), element("tbody", {}, ...rows.map(line))));
}

// Bar next to a ratio. Its length is the distance from 1 on a scale where 2 and 1/2 are equally far.
function bar(ratio, text) {
  const length = Math.min(Math.abs(Math.log2(ratio)), 4);
  const drawn = element("span", { class: ratio < 1 ? "bar less" : "bar" });
  drawn.style.width = `${(1.2 * length).toFixed(2)}rem`;
  return [drawn, text];
}

const tip = document.getElementById("tip");
function showTip(lines, x, y) {
  tip.replaceChildren(...lines.map((line) => element("div", {}, line)));
  tip.hidden = false;
  const left = Math.max(4, Math.min(x + 14, document.documentElement.clientWidth - tip.offsetWidth - 8));
  tip.style.left = `${left + window.scrollX}px`;
  tip.style.top = `${y + window.scrollY + 16}px`;
}
const hideTip = () => { tip.hidden = true; };
