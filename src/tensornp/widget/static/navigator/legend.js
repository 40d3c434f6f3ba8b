// What the colours of a window mean: the scale as a stripe, and in words, with what has no place on it.

import { element } from "../page/elements.js";
import { gradientOf, specialCalled, swatchOf } from "./shades.js";

const SEPARATOR = " · ";

export class Legend {
  constructor() {
    this.node = element("span", "legend");
    this.stripe = element("span", "scale");
    this.stripe.setAttribute("aria-hidden", "true");
    this.words = element("span", "legend-text");
    this.node.append(this.stripe, this.words);
  }

  paint({ legend, scale: [low, high] }) {
    this.words.replaceChildren(
      ...legend.split(SEPARATOR).flatMap((text, i) => {
        const special = specialCalled(text);
        return [i ? SEPARATOR : "", ...(special ? [swatchOf(special)] : []), text];
      }),
    );
    this.stripe.style.backgroundImage = gradientOf(low, high);
    this.stripe.hidden = !(low < 0 || high > 0);
  }
}
