// the book as one PDF, before it is printed (`make pdf`): small frames stay whole, and headings with what follows; tables that
// would be cut off are set smaller and may break names at _ and /; what is still too wide is named
width => {
  const height = node => node.getBoundingClientRect().height;
  for (const row of document.querySelectorAll("article .sd-row")) {
    const columns = Number(/sd-row-cols-lg-(\d)/.exec(row.className)?.[1] ?? 1);
    [...row.children].forEach((card, place) => {
      if (place % columns === 0) row.before(Object.assign(row.cloneNode(false), {className: "cards"}));
      row.previousElementSibling.append(card);
    });
    row.remove();
  }
  const frames = "article :is(.cell, .cell_input, .cell_output, [class*=highlight], .sd-card, .admonition, .proof, details, table, figure)";
  for (const frame of document.querySelectorAll(frames)) {
    frame.classList.add(height(frame) < (frame.matches("table") ? 240 : 270) ? "whole" : "broken");
  }
  for (const heading of document.querySelectorAll("article :is(h1, h2, h3, h4, h5, h6)")) {
    const together = document.createElement("div");
    together.className = "whole";
    heading.before(together);
    together.append(heading);
    for (let next = together.nextElementSibling; next && next.nodeName !== "SECTION"; next = together.nextElementSibling) {
      if (height(together) > 90 || height(together) + height(next) > 340) break;
      together.append(next);
    }
    together.classList.toggle("headed", height(together) <= 90);
  }
  const wide = () => [...document.querySelectorAll("article table, article pre, article img, article mjx-container")]
    .filter(node => node.getBoundingClientRect().right > width - 29);
  for (const table of wide().filter(node => node.matches("table"))) {
    table.classList.add("tight");
    const walker = document.createTreeWalker(table, NodeFilter.SHOW_TEXT), texts = [];
    while (walker.nextNode()) texts.push(walker.currentNode);
    for (const text of texts) {
      const parts = text.data.split(/(?<=[_/])/);
      text.replaceWith(...parts.flatMap((part, place) => place ? [document.createElement("wbr"), part] : [part]));
    }
  }
  const cut = wide().map(node => `${node.closest("article").id}: ${node.textContent.trim().slice(0, 60)}`);
  return document.documentElement.scrollWidth > width ? [...cut, "the page, so that all would be printed smaller"] : cut;
}
