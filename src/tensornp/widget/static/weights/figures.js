// All figures of one weight: a line, a heat map, and tables.

import { button, element, pictureOf } from "../page/elements.js";

// `seek(goal)` goes to an extreme among the values, where these are offered.
export function figuresOf({ figures, tables, heatmap }, seek) {
  const line = element("div", "figures-line");
  if (figures.picture.src) line.append(pictureOf(figures.picture));
  line.append(element("span", "", [...figures.words, ...figures.alarms.map(([, text]) => text)].join(" · ")));
  const nodes = [line];
  if (heatmap.shown) {
    const picture = element("div", "heatmap");
    picture.append(pictureOf(heatmap.shown), element("div", "said", heatmap.caption));
    nodes.push(picture);
  }
  return [...nodes, ...tables.map(({ headings, rows }) => tableOf(headings, rows, seek))];
}

function tableOf(headings, rows, seek) {
  const scroller = element("div", "scroller");
  scroller.tabIndex = 0;
  scroller.setAttribute("role", "region");
  scroller.setAttribute("aria-label", headings.filter(Boolean).join(", "));
  const table = element("table", "figure-table");
  const head = element("tr");
  head.append(...headings.map((text) => Object.assign(element("th", "", text), { scope: "col" })));
  const body = rows.map((cells) => {
    const row = element("tr");
    row.append(...cells.map((text) => element("td", "", text)));
    row.cells[0].setAttribute("role", "rowheader");
    if (seek && ["min", "max"].includes(cells[0]) && cells[2]?.startsWith("[")) {
      row.cells[1].replaceChildren(button(cells[1], `Go to the ${cells[0]}`, () => seek(cells[0]), "copy tensornp-link"));
    }
    if (cells.length < headings.length) row.lastChild.colSpan = headings.length;
    return row;
  });
  const [thead, tbody] = [element("thead"), element("tbody")];
  thead.append(head);
  tbody.append(...body);
  table.append(thead, tbody);
  scroller.append(table);
  return scroller;
}
