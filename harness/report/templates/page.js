"use strict";
const byId = (id) => document.getElementById(id);
const rows = [...byId("cells").tBodies[0].rows];
for (const row of rows) {
  if (!row.id) row.id = row.cells[0].firstChild.data;
  row.codes = row.dataset.a.split(",");
  row.text = row.textContent.toLowerCase();
  row.verdict = row.cells[1].firstChild.data.replace(/ \(.*/, "");
}
const form = byId("filter");
const axes = [...form.querySelectorAll("[data-axis]")];
const filter = () => {
  const text = byId("text").value.toLowerCase();
  const verdict = byId("verdict").value;
  const wanted = axes.filter((axis) => axis.value !== "");
  let shown = 0;
  for (const row of rows) {
    row.hidden = !(row.text.includes(text) && (!verdict || row.verdict === verdict)
      && wanted.every((axis) => row.codes[axis.dataset.axis] === axis.value));
    shown += !row.hidden;
  }
  byId("shown").value = shown + " of " + rows.length + " cells";
};
form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => setTimeout(filter));
const grids = [...document.querySelectorAll(".grid")];
const pair = byId("pair");
const choose = () => grids.forEach((grid, index) => { grid.hidden = String(index) !== pair.value; });
if (pair) {
  pair.addEventListener("input", choose);
  choose();
}
for (const grid of grids) {
  grid.addEventListener("click", (event) => {
    const cell = event.target.closest("td");
    if (!cell) return;
    form.reset();
    axes.find((axis) => axis.dataset.axis === grid.dataset.d).value = String(cell.parentNode.rowIndex - 1);
    axes.find((axis) => axis.dataset.axis === grid.dataset.c).value = String(cell.cellIndex - 1);
    setTimeout(filter);
    byId("cells").scrollIntoView();
  });
}
const open = () => {
  const row = byId(decodeURIComponent(location.hash.slice(1)));
  if (!row) return;
  row.hidden = false;
  row.querySelectorAll("details").forEach((detail) => { detail.open = true; });
  row.scrollIntoView();
};
window.addEventListener("hashchange", open);
for (const part of document.querySelectorAll(".js")) part.hidden = false;
filter();
open();
