// The colours of values: orange above zero, blue below, as strong as they are large.

const FULL = 100;
const STRONGEST = 0.5;
const ORANGE = "219, 125, 50";
const BLUE = "60, 130, 210";
// What the shades of a value without a place on the scale say of it.
const SPECIAL = { 127: "nan", 126: "inf", "-126": "inf", 125: "unshown" };

export function specialOf(shade) {
  return SPECIAL[shade];
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
