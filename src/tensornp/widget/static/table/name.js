// A name, or words with a name in them, that break after its parts, as in the static table; whoever copies it has no more.

import { element } from "../page/elements.js";

const BREAKS = /(?<=[._/[\]])(?=[^._/[\]\s\d])|(?<=[\p{L}\p{N}]{24})(?=[\p{L}\p{N}])/u;
// Characters of a name that has room in any page.
const MAX_WHOLE = 24;

// Words that are written from right to left, which move nothing that stands beside them.
const LETTERS = "[\\u0590-\\u08ff\\ufb1d-\\ufdff\\ufe70-\\ufefc\\u{10800}-\\u{10fff}\\u{1e800}-\\u{1efff}]+";
const RIGHT_TO_LEFT = new RegExp(`(${LETTERS}(?: ${LETTERS})*)`, "u");

export function partsOf(name) {
  const parts = name.length > MAX_WHOLE ? name.split(BREAKS) : [name];
  return parts.flatMap((part, i) => (i ? [element("wbr"), ...isolated(part)] : isolated(part)));
}

function isolated(text) {
  return text.split(RIGHT_TO_LEFT).map((part, i) => (i % 2 ? element("bdi", "", part) : part));
}
