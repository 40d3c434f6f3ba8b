// The colours of values: orange above zero, blue below, as strong as they are large.

import { element } from "../page/elements.js";

const FULL = 100;
const STRONGEST = 0.5;
const ORANGE = "219, 125, 50";
const BLUE = "60, 130, 210";
// What the shades of a value without a place on the scale say of it.
const SPECIAL = { 127: "nan", 126: "inf", "-126": "inf", 125: "unshown" };

export function specialOf(shade) {
  return SPECIAL[shade];
}

// What a legend calls them.
const SPECIAL_OF = { NaN: "nan", Inf: "inf", hidden: "unshown" };

// A small square of a colour, before the words that say what it stands for.
export function swatchOf(kind = "") {
  const node = element("span", `swatch${kind && ` tensornp-${kind}`}`);
  node.setAttribute("aria-hidden", "true");
  return node;
}

// What the last word of a part of a legend stands for, if that has no place on the scale.
export function specialCalled(text) {
  return SPECIAL_OF[text.split(" ").at(-1)];
}

export function colourOf(shade) {
  const strength = (STRONGEST * Math.min(Math.abs(shade), FULL)) / FULL;
  return `rgba(${shade > 0 ? ORANGE : BLUE}, ${strength.toFixed(3)})`;
}

// From the colour of the least value to that of the largest, with nothing at zero.
export function gradientOf(low, high) {
  const ends = [low < 0 ? colourOf(-FULL) : "transparent", "transparent", high > 0 ? colourOf(FULL) : "transparent"];
  const shown = low < 0 && high > 0 ? ends : low < 0 ? ends.slice(0, 2) : ends.slice(1);
  return `linear-gradient(to right, ${shown.join(", ")})`;
}
