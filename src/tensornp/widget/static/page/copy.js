
// A button that copies a text.

import { button } from "./elements.js";

const COPIED_FOR_MS = 1500;
const SVG = "http://www.w3.org/2000/svg";

// Pages that are not served securely have no clipboard but that of the selection.
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = Object.assign(document.createElement("textarea"), { value: text });
    area.style.position = "fixed";
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

// Two sheets, one behind the other, in the colour of the text.
function icon() {
  const svg = document.createElementNS(SVG, "svg");
  const sheets = document.createElementNS(SVG, "path");
  const look = { viewBox: "0 0 16 16", width: 13, height: 13, fill: "none", stroke: "currentColor", "stroke-width": 1.4 };
  Object.entries(look).forEach(([name, value]) => svg.setAttribute(name, String(value)));
  svg.setAttribute("aria-hidden", "true");
  svg.style.verticalAlign = "-2px";
  sheets.setAttribute("d", "M5.5 5.5h8v8h-8zM3.5 10.5h-1v-8h8v1");
  svg.append(sheets);
  return svg;
}

export function copyButton(what, text, word = "") {
  const paint = (node) => node.replaceChildren(icon(), ...(word ? [` ${word}`] : []));
  const copy = async ({ currentTarget: node }) => {
    await copyText(text());
    node.focus();
    node.textContent = "copied";
    setTimeout(() => paint(node), COPIED_FOR_MS);
  };
  const node = button("", `Copy ${what}`, copy, "copy");
  paint(node);
  node.setAttribute("aria-label", node.title);
  return node;
}
