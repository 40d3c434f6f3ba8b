// Nodes of the page; their classes begin with "tensornp-", and `text` is text and never HTML.

export function element(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = `tensornp-${className}`;
  if (text !== undefined) node.textContent = text;
  return node;
}

export function focused() {
  return document.activeElement;
}

export function button(text, title, press, className = "button") {
  const node = element("button", className, text);
  node.type = "button";
  node.title = title;
  node.addEventListener("click", press);
  return node;
}

export function clamp(value, size) {
  return Math.min(Math.max(value, 0), Math.max(size - 1, 0));
}

// Places HTML with escaped texts, unless it is there. The focus goes back to the control of the same name.
export function place(node, html) {
  if (node.placed === html) return;
  const name = node.contains(focused()) && focused().name;
  node.innerHTML = node.placed = html;
  if (name) node.querySelector(`[name="${CSS.escape(name)}"]`)?.focus({ preventScroll: true });
}

// A screen reader would hear an unchanged text again.
export function tell(region, text) {
  if (region.textContent !== text) region.textContent = text;
}
