// A name, or words with a name in them, that break after its parts, as in the static table; whoever copies it has no more.

import { element } from "../page/elements.js";

const BREAKS = /(?<=[._/[\]])(?=[^._/[\]\s\d])|(?<=[\p{L}\p{N}]{24})(?=[\p{L}\p{N}])/u;
// Characters of a name that has room in any page.
const MAX_WHOLE = 24;

/** @param {string} name @returns {(Node | string)[]} */
export function partsOf(name) {
  if (name.length <= MAX_WHOLE) return [name];
  return name.split(BREAKS).flatMap((part, i) => (i ? [element("wbr"), part] : [part]));
}
