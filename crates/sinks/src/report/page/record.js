// Dialog with all values of a case.
const dialog = document.getElementById("record");

function link(address, text) {
  return element("a", { href: address }, text);
}
// Button that opens a case.
function opener(row, text) {
  return element("button", { type: "button", class: "link", onclick: () => openRecord(row) }, text);
}
function links(row) {
  const found = [["trace_link", "trace"], ["memory_link", "memory"]].map(([name, text]) => [get(name, row), text]);
  return found.filter(([address]) => address !== null).map(([address, text]) => link(address, text));
}

function openRecord(row) {
  const list = element("dl");
  for (const column of data.columns) {
    const text = column.kind === "link" || column.name === "id" ? "" : written(column, row);
    if (text !== "") list.append(element("dt", { title: column.doc }, column.name), element("dd", { class: column.name === "verdict" ? text.toLowerCase() : undefined }, text));
  }
  const close = element("button", { type: "button", class: "close", onclick: () => dialog.close() }, "Close");
  const files = links(row).flatMap((file) => [file, " "]);
  dialog.replaceChildren(element("h2", { id: "record-title", class: "id" }, get("id", row)), element("p", {}, ...files), windowHistogram(row) ?? "", list, close);
  dialog.showModal();
  dialog.scrollTop = 0;
}
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
