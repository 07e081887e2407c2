// Fields of the explorers and of the planner: each place has its numbers in the page; nothing is computed here.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  for (const box of document.querySelectorAll(".explorer")) {
    const told = JSON.parse(box.querySelector("script").textContent);
    const fields = [...box.querySelectorAll("input, select")];
    const draw = box.classList.contains("ranked") ? ranks(box, told.methods, told.said) : dots(box);
    const show = () => {
      for (const slider of box.querySelectorAll("input")) {
        const said = slider.dataset.values.split("|")[slider.value];
        slider.setAttribute("aria-valuetext", said);
        slider.parentElement.querySelector("output").textContent = said;
      }
      draw((told.places || told)[fields.map((field) => field.value).join("-")], fields);
    };
    for (const field of fields) field.addEventListener("input", show);
  }
});

// An explorer: a dot and a number for each method.
const dots = (box) => {
  const [spots, numbers, cells] = ["circle", "text.number", "td"].map((kind) => [...box.querySelectorAll(kind)]);
  return (place) =>
    place.forEach((spot, row) => {
      const [x, number] = spot || [14, "not possible"];
      spots[row].setAttribute("cx", x);
      spots[row].setAttribute("class", spot ? "ours" : "faint");
      numbers[row].setAttribute("x", x + 10);
      numbers[row].textContent = cells[row].textContent = number;
    });
};

// The planner: a row for each method that serves, best first, and what to type.
const ranks = (box, methods, said) => {
  const row = (head, ...cells) => {
    const made = document.createElement("tr");
    made.append(document.createElement("th"), ...cells.map(() => document.createElement("td")));
    made.firstChild.scope = "row";
    [head, ...cells].forEach((text, place) => (made.children[place].textContent = text));
    return made;
  };
  return (place, fields) => {
    const ranked = place ? place.split(";").map((one) => one.split(" ")) : [];
    const rows = ranked.map(([method, error, found]) => row(methods[method], said[error], found || ""));
    box.querySelector("table").classList.toggle("unnamed", !ranked.some(([, , found]) => found)); // of a mean nothing is found
    box.querySelector("tbody").replaceChildren(...(rows.length ? rows : [row("none: the command says why", "", "")]));
    box.querySelector("code").textContent = [
      "evolvingdp plan",
      ...fields.map((field) => field.dataset.typed.split("|")[field.value]),
    ].join(" ");
  };
};

// A live picture: each stop of its slider has what differs in the drawing, and a sentence.
document.addEventListener("DOMContentLoaded", () => {
  for (const box of document.querySelectorAll(".live")) {
    const frames = JSON.parse(box.querySelector("script").textContent), marks = box.querySelectorAll("[data-part]");
    const [label, slider, output, says] = ["label", "input", "output", ".says"].map((kind) => box.querySelector(kind));
    label.hidden = false;
    slider.addEventListener("input", () => {
      const frame = frames[slider.value];
      frame.parts.forEach(([attributes, text], place) => {
        for (const [name, value] of Object.entries(attributes)) marks[place].setAttribute(name, value);
        marks[place].textContent = text;
      });
      says.textContent = frame.says;
      output.textContent = frame.stop;
      slider.setAttribute("aria-valuetext", frame.stop);
    });
  }
  // what a chapter no longer has is on its in-depth page: its old address leads there
  const depth = location.pathname.split("/").pop().replace(/\.html$/, "_in_depth.html");
  const gone = location.hash && !document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (gone && document.querySelector(`article a[href^="${depth}"]`)) location.replace(depth + location.hash);
});
