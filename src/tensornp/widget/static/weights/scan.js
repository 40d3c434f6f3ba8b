// The scan of what is listed: what begins and ends it, and how far it is.

import { button, element } from "../page/elements.js";

// Within which a second press of a button belongs to the first.
const TWICE_MS = 500;

export class Scan {
  pressed = -Infinity;

  // `isRunning()` tells whether there is one; `press(type)` asks for one, or for its end.
  constructor({ isRunning, press }) {
    this.isRunning = isRunning;
    this.press = press;
    this.button = button("Scan", "", (event) => this.pressOnce(event));
    this.meter = element("progress", "meter");
    this.meter.setAttribute("aria-label", "Read");
    this.meter.hidden = true;
  }

  // Stop takes the place of Scan: the second press of a double click is none on it.
  pressOnce({ detail }) {
    const isRunning = this.isRunning();
    const now = performance.now();
    if (detail > 1 || (isRunning && now - this.pressed < TWICE_MS)) return;
    if (!isRunning) this.pressed = now;
    this.press(isRunning ? "end" : "scan");
  }

  // `share` is negative where none runs; `cost` is what one of all that is listed costs.
  paint(share, isPart, isAgain, cost) {
    const isRunning = share >= 0;
    this.button.textContent = isRunning ? "Stop" : isPart ? "Scan these" : isAgain ? "Scan again" : "Scan";
    const begin = `Read all that is listed, and tell what stands out (${cost})`;
    this.button.title = isRunning ? "Stop, and show what was read so far" : begin;
    this.meter.hidden = !isRunning;
    if (isRunning) this.meter.value = share;
  }
}
