// A table of class "searchable": its rows are filtered by what is typed above it and sorted by the headers, which are
// buttons; cells learn the name of their column, which a phone shows beside them.  Without scripts it is a plain table.
"use strict";
(() => {
  const number = (text) => (/^\s*(inf|[\d.e+-]+)/i.test(text) ? (text.trim().startsWith("inf") ? Infinity : parseFloat(text)) : NaN);
  const sorted = (rows, column, down) => rows.sort((a, b) => {
    const [x, y] = [a, b].map((row) => row.cells[column].textContent.trim());
    const order = isNaN(number(x) - number(y)) ? (x === y ? 0 : x.localeCompare(y)) : number(x) - number(y);
    return down ? -order : order;
  });
  const prepare = (table) => {
    const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells], rows = [...body.rows];
    const box = document.createElement("label"), field = document.createElement("input"), count = document.createElement("output");
    box.className = "table-search";
    field.type = "search";
    box.append("Search the table ", field, " ", count);
    const filter = () => {
      const words = field.value.toLowerCase().split(/\s+/);
      rows.forEach((row) => { row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word)); });
      count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
    };
    field.addEventListener("input", filter);
    (table.closest(".pst-scrollable-table-container") ?? table).before(box);
    heads.forEach((head, column) => {
      const name = head.textContent.trim(), button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.title = `sort by ${name}`;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        body.append(...sorted([...rows], column, down));
      });
      rows.forEach((row) => row.cells[column].setAttribute("data-label", name));
    });
    filter();
  };
  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("table.searchable").forEach(prepare));
})();
