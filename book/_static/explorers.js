// Sliders of the explorers: each position has its numbers in the page; nothing is computed here.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  for (const box of document.querySelectorAll(".explorer")) {
    const places = JSON.parse(box.querySelector("script").textContent);
    const sliders = [...box.querySelectorAll("input")];
    const [dots, numbers, cells] = ["circle", "text.number", "td"].map((kind) => [...box.querySelectorAll(kind)]);
    const show = () => {
      for (const slider of sliders) {
        const said = slider.dataset.values.split("|")[slider.value];
        slider.setAttribute("aria-valuetext", said);
        slider.parentElement.querySelector("output").textContent = said;
      }
      places[sliders.map((slider) => slider.value).join("-")].forEach((spot, row) => {
        const [x, number] = spot || [14, "not possible"];
        dots[row].setAttribute("cx", x);
        dots[row].setAttribute("class", spot ? "ours" : "faint");
        numbers[row].setAttribute("x", x + 10);
        numbers[row].textContent = cells[row].textContent = number;
      });
    };
    for (const slider of sliders) slider.addEventListener("input", show);
  }
});
