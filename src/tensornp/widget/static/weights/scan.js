// The scan of what is listed: what begins and ends it, and how far it is.

import { button, element } from "../page/elements.js";

export class Scan {
  // `isRunning()` tells whether there is one; `press(type)` asks for one, or for its end.
  constructor({ isRunning, press }) {
    // The second press of a double click does not stop what the first began.
    this.button = button("Scan", "", ({ detail }) => detail < 2 && press(isRunning() ? "end" : "scan"));
    this.meter = element("progress", "meter");
    this.meter.setAttribute("aria-label", "Read");
    this.meter.hidden = true;
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
