// A button that copies the text in its `data-copy`.

import { button } from "./elements.js";

const COPIED_FOR_MS = 1500;

// Pages that are not served securely have no clipboard API.
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

export function copyButton(what, text, word = "") {
  const copy = async () => {
    await copyText(node.dataset.copy);
    node.focus();
    node.textContent = "copied";
    setTimeout(() => (node.textContent = word), COPIED_FOR_MS);
  };
  const node = button(word, `Copy ${what}`, copy, "copy");
  node.setAttribute("aria-label", node.title);
  node.dataset.copy = text;
  return node;
}
