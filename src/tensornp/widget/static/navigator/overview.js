// The plane around the window as a picture, whose frame shows the window. A click goes to a place.

import { button, clamp, element } from "../page/elements.js";

export const WIDTH = 96;
const MIN_HEIGHT = 16;
const MAX_HEIGHT = 288;
const MIN_FRAME = 8;

export class Overview {
  // `ask()` asks for the picture, and `go(row, column)` goes to a place of the plane; to the grid without a place.
  constructor({ ask, go }) {
    this.ask = ask;
    this.node = element("div", "overview");
    this.map = button("", "A click goes to that place", (event) => this.click(event, go), "map");
    this.frame = element("span", "frame");
    this.words = element("div", "words");
    this.wanted = button("Overview", "", ask);
    this.node.append(this.map, this.words, this.wanted);
  }

  // `isNew` says that the picture may have changed.
  paint({ axes, shape, corner, size, overview }, isNew) {
    this.node.hidden = !overview;
    this.plane = axes.map((axis) => (axis === null ? 1 : shape[axis]));
    const [rows, columns] = this.plane;
    this.height = Math.round(Math.min(Math.max((WIDTH * rows) / columns, MIN_HEIGHT), MAX_HEIGHT));
    this.paintFrame(axes.map((axis) => (axis === null ? 0 : corner[axis])), size);
    if (!isNew) return;
    this.clear();
    this.wanted.hidden = overview === "free";
    this.wanted.title = `A picture of all that the window can be moved over: ${overview}`;
    if (this.wanted.hidden) this.ask();
  }

  paintFrame(first, size) {
    [this.height, WIDTH].forEach((room, i) => {
      const long = Math.min(Math.max((room * size[i]) / this.plane[i], MIN_FRAME), room);
      const from = (room * (first[i] + size[i] / 2)) / this.plane[i] - long / 2;
      this.frame.style[i ? "width" : "height"] = `${long}px`;
      this.frame.style[i ? "left" : "top"] = `${Math.min(Math.max(from, 0), room - long)}px`;
    });
  }

  clear(words = []) {
    this.map.hidden = true;
    this.words.replaceChildren(...words.map((text) => element("div", "", text)));
  }

  take({ src, alt, words, text }) {
    if (text) this.clear([text]);
    if (!src) return;
    this.clear(words);
    this.map.hidden = false;
    this.wanted.hidden = true;
    this.map.style.height = `${this.height}px`;
    this.map.replaceChildren(Object.assign(element("img"), { src, alt }), this.frame);
    this.map.setAttribute("aria-label", `Overview: ${alt}`);
  }

  click({ detail, clientX, clientY }, go) {
    const box = this.map.getBoundingClientRect();
    const shares = [(clientY - box.top) / box.height, (clientX - box.left) / box.width];
    go(...(detail ? shares.map((share, i) => clamp(Math.floor(share * this.plane[i]), this.plane[i])) : []));
  }
}
