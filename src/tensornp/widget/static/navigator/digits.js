// The button that says in how many digits the numbers of a grid may be shown instead.

import { button } from "../page/elements.js";

const DIGITS = [4, 8];

// `chosen` has the digits, and `again()` shows the numbers anew.
/** @param {{ digits: number }} chosen @param {() => void} again */
export function digitsButton(chosen, again) {
  const other = () => DIGITS[chosen.digits === DIGITS[0] ? 1 : 0];
  const press = () => {
    chosen.digits = other();
    again();
  };
  const node = button("", "", press, "copy");
  node.paint = () => {
    node.textContent = `${other()} digits`;
    node.title = `Show the numbers of the grid in ${other()} significant digits`;
    node.setAttribute("aria-label", `${other()} digits in the grid`);
  };
  node.paint();
  return node;
}
