// A region that scrolls needs a tab stop, or no keyboard reaches what it hides.  The theme gives one to code and tables, but
// only as it finds them when the page opens; formulas it leaves out.
"use strict";
(() => {
  const formulas = () => {
    for (const formula of document.querySelectorAll("article span.math")) { // a long one in a line: the theme cuts it off
      const drawn = formula.querySelector("mjx-math");
      formula.classList.toggle("cut", drawn !== null && drawn.getBoundingClientRect().width > formula.clientWidth + 1);
    }
    for (const formula of document.querySelectorAll("article div.math, article span.math, article mjx-container")) {
      const scrolls = getComputedStyle(formula).overflowX === "auto" && formula.scrollWidth > formula.clientWidth;
      scrolls ? formula.setAttribute("tabindex", "0") : formula.removeAttribute("tabindex");
    }
  };
  const texts = (element) => {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT), found = [];
    while (walker.nextNode()) found.push(walker.currentNode);
    return found;
  };
  const whole = (option) => {
    const span = document.createElement("span");
    span.className = "joined";
    span.textContent = option;
    return span;
  };
  const options = (command) => { // a command wraps on a phone, but not behind the hyphens of an option
    for (const text of texts(command)) text.replaceWith(...text.data.split(/(?<=^|\s)(-\S+)/).map((part, place) => (place % 2 ? whole(part) : part)));
  };
  const breakable = (table) => { // names of code break behind an underscore, a slash or a dot
    for (const text of texts(table).filter((each) => /([_/]|[a-z]\.)\S/.test(each.data))) { // also what came after the last time
      text.replaceWith(...text.data.split(/(?<=[_/]|[a-z]\.)(?=\S)/).flatMap((part, place) => (place ? [document.createElement("wbr"), part] : [part])));
    }
  };
  const tables = () => {
    for (const output of document.querySelectorAll("article .cell_output > .output")) {
      output.scrollWidth > output.clientWidth + 1 ? output.setAttribute("tabindex", "0") : output.removeAttribute("tabindex");
    }
    for (const table of document.querySelectorAll("article table")) {
      table.classList.remove("tight");
      const wide = window.innerWidth >= 992 && table.scrollWidth > (table.closest(".pst-scrollable-table-container") ?? table.parentElement).clientWidth + 1;
      table.classList.toggle("tight", wide);
      if (wide || window.innerWidth < 576) breakable(table);
    }
  };
  window.addEventListener("resize", formulas);
  window.addEventListener("resize", tables);
  // what was folded away had no size: let everybody who watches the window measure again
  document.addEventListener("toggle", () => window.dispatchEvent(new Event("resize")), true);
  // the theme takes the focus off its buttons when they are used: a mouse does not mind, a keyboard is back at the top
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button || event.detail > 0) return;
    button.blur = () => {};
    setTimeout(() => delete button.blur);
  }, true);
  // what is folded is printed, but for code that the page hides
  const folded = [];
  const unfold = () => document.querySelectorAll("article details:not([open], .above-input)").forEach((fold) => { fold.open = true; folded.push(fold); });
  const restore = () => folded.splice(0).forEach((fold) => { fold.open = false; });
  window.addEventListener("beforeprint", unfold);
  window.addEventListener("afterprint", restore);
  matchMedia("print").addEventListener("change", (print) => (print.matches ? unfold : restore)());
  window.addEventListener("load", () => window.MathJax?.startup?.promise.then(formulas).then(tables));
  window.addEventListener("load", () => document.querySelectorAll("article .highlight-bash pre, article td code").forEach(options));
  window.addEventListener("load", () => document.querySelectorAll("article td").forEach((cell) => {
    cell.classList.toggle("words", cell.textContent.length > 40);
    cell.classList.toggle("phrase", cell.textContent.length > 20);
  }));
  window.addEventListener("load", tables);
  const erratum = () => { // who follows a link to an erratum finds it open
    const heading = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    heading?.closest("section")?.querySelector(":scope > details.erratum")?.setAttribute("open", "");
  };
  window.addEventListener("load", erratum);
  window.addEventListener("hashchange", erratum);
})();
