// The plane around the window as a picture: where one is, and a click, or a key, leads elsewhere.

import { button, element, pictureOf } from "../page/elements.js";

export const WIDTH = 96;
const MIN_HEIGHT = 16;
const MAX_HEIGHT = 288;
// Of a frame, so that it is found in a large plane.
const MIN_FRAME = 8;

export class Overview {
  plane = [1, 1];
  first = [0, 0];
  isDrawn = false;

  // `ask()` asks for the picture, and `go(row, column)` goes to a place of the plane.
  constructor({ ask, go }) {
    this.ask = ask;
    this.node = element("div", "overview");
    this.node.hidden = true;
    this.map = button("", "A click goes there; arrow keys move the window by its size", (event) => this.click(event), "map");
    this.frame = element("span", "frame");
    this.words = element("div", "words");
    this.wanted = button("Overview", "", () => ask(), "button");
    this.node.append(this.map, this.words, this.wanted);
    this.go = go;
  }

  // `isNew` says that what the picture shows may have changed.
  paint(seen, isNew) {
    const { axes, shape, corner, size, overview } = seen;
    const plane = axes.map((axis) => (axis === null ? 1 : shape[axis]));
    this.node.hidden = !overview;
    if (this.node.hidden) {
      this.clear();
      return;
    }
    if (String(plane) !== String(this.plane)) this.clear();
    this.plane = plane;
    this.first = axes.map((axis) => (axis === null ? 0 : corner[axis]));
    this.paintFrame(size);
    const isFree = overview === "free";
    if (isNew && isFree) this.ask();
    else if (isNew) this.clear();
    this.wanted.hidden = isFree || this.isDrawn;
    this.wanted.title = `A picture of all that the window can be moved over: ${overview}`;
  }

  paintFrame(size) {
    const [height, width] = [this.height(), WIDTH];
    [height, width].forEach((room, i) => {
      const long = Math.min(Math.max((room * size[i]) / this.plane[i], MIN_FRAME), room);
      const from = (room * (this.first[i] + size[i] / 2)) / this.plane[i] - long / 2;
      this.frame.style[i ? "width" : "height"] = `${long}px`;
      this.frame.style[i ? "left" : "top"] = `${Math.min(Math.max(from, 0), room - long)}px`;
    });
  }

  height() {
    const [rows, columns] = this.plane;
    return Math.round(Math.min(Math.max((WIDTH * rows) / columns, MIN_HEIGHT), MAX_HEIGHT));
  }

  clear() {
    this.isDrawn = false;
    this.map.hidden = true;
    this.words.replaceChildren();
  }

  take({ src, alt, words }) {
    if (!src) return;
    this.isDrawn = true;
    this.map.hidden = false;
    this.wanted.hidden = true;
    this.map.style.height = `${this.height()}px`;
    this.map.replaceChildren(pictureOf({ src, alt }), this.frame);
    this.map.setAttribute("aria-label", `Overview: ${alt}`);
    this.words.replaceChildren(...words.map((text) => element("div", "", text)));
  }

  refuse(text) {
    this.clear();
    this.words.replaceChildren(element("div", "", text));
  }

  click({ detail, clientX, clientY }) {
    // A key presses it without a place: it leads to the grid.
    if (!detail) {
      this.go();
      return;
    }
    const box = this.map.getBoundingClientRect();
    const shares = [(clientY - box.top) / box.height, (clientX - box.left) / box.width];
    const [row, column] = shares.map((share, i) => Math.min(Math.max(Math.floor(share * this.plane[i]), 0), this.plane[i] - 1));
    this.go(row, column);
  }
}
