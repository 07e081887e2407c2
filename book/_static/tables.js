// A table of class "searchable": its rows are filtered by what is typed above it and sorted by the headers, which are
// buttons; cells learn the name of their column, which a phone shows beside them.  In one of class "grouped" the first column
// becomes headings of groups, which stay where they are when their rows are sorted.  Without scripts it is a plain table, or,
// where its rows stand in a script beside it, a line that says where they are.
"use strict";
(() => {
  const power = (raised) => [...raised].map((digit) => (digit === "⁻" ? "-" : "⁰¹²³⁴⁵⁶⁷⁸⁹".indexOf(digit))).join("");
  const number = (text) => { // 5.5·10⁻⁵, 12,000, inf, and what begins with one
    const plain = text.trim().replace(/^(?:([\d.]+)·)?10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)/, (_, digits = "1", raised) => `${digits}e${power(raised)}`);
    return plain.startsWith("inf") ? Infinity : parseFloat(plain.replaceAll(",", ""));
  };
  const sorted = (rows, column, down) => rows.sort((a, b) => {
    const [x, y] = [a, b].map((row) => row.cells[column].textContent.trim());
    const order = isNaN(number(x) - number(y)) ? (x === y ? 0 : x.localeCompare(y)) : number(x) - number(y);
    return down ? -order : order;
  });
  const grouped = (table) => { // a body for each group: its heading and its rows
    const rows = [...table.tBodies[0].rows];
    table.tHead.rows[0].cells[0].remove();
    table.querySelector("colgroup")?.firstElementChild.remove();
    for (const row of rows) {
      const name = row.cells[0].textContent.trim(), last = table.tBodies[table.tBodies.length - 1];
      row.cells[0].remove();
      if (last.dataset.name !== name) {
        const body = table.createTBody(), heading = document.createElement("th");
        body.dataset.name = heading.textContent = name;
        heading.scope = "rowgroup";
        heading.colSpan = row.cells.length;
        body.insertRow().append(heading);
        body.rows[0].className = "group";
      }
      table.tBodies[table.tBodies.length - 1].append(row);
    }
    table.tBodies[0].remove();
  };
  const filled = (table) => { // with the rows of the script below it, as text
    const data = table.parentElement.querySelector("script.rows");
    if (!data || table.tBodies[0].rows.length) return;
    for (const cells of JSON.parse(data.textContent)) {
      const row = table.tBodies[0].insertRow();
      for (const text of cells) row.insertCell().textContent = text;
    }
    table.parentElement.querySelector(".unscripted").remove();
  };
  const prepare = (table) => {
    filled(table);
    if (table.matches(".grouped")) grouped(table);
    const bodies = [...table.tBodies], heads = [...table.tHead.rows[0].cells], rows = [...table.querySelectorAll("tbody tr:not(.group)")];
    const box = document.createElement("label"), field = document.createElement("input"), count = document.createElement("output");
    box.className = "table-search";
    field.type = "search";
    box.append("Search the table ", field, " ", count);
    const filter = () => {
      const words = field.value.toLowerCase().split(/\s+/);
      rows.forEach((row) => { row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word)); });
      bodies.forEach((body) => { body.hidden = ![...body.rows].some((row) => !row.hidden && !row.matches(".group")); });
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
        bodies.forEach((body) => body.append(...sorted(rows.filter((row) => row.parentElement === body), column, down)));
      });
      for (const row of rows) if (row.cells[column].textContent.trim()) row.cells[column].setAttribute("data-label", name);
    });
    filter();
  };
  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("table.searchable").forEach(prepare));
})();
