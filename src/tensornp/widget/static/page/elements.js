// Nodes of the page; their classes begin with "tensornp-", and whatever is said is text and never HTML.

export function element(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = `tensornp-${className}`;
  if (text !== undefined) node.textContent = text;
  return node;
}

export function focused() {
  return (document.activeElement);
}

// To set what is there already costs as much as to set something else.
export function put(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

export function button(text, title, press, className = "button") {
  const node = element("button", className, text);
  node.type = "button";
  node.title = title;
  node.addEventListener("click", press);
  return node;
}

// A field that no browser fills in.
export function field(tag, type, className, label) {
  const node = element(tag, className);
  if (type) node.type = type;
  node.setAttribute("aria-label", label);
  node.autocomplete = "off";
  return node;
}

// A name keeps the order of its parts, whatever their letters, and reorders nothing beside it.
export function nameOf(kind, text) {
  const node = element("bdi", kind, text);
  node.dir = "ltr";
  return node;
}

// What a screen reader says when it is told something.
export function liveRegion() {
  const node = element("span", "live-region");
  node.setAttribute("aria-live", "polite");
  return node;
}

// What is said there already would be heard again.
export function tell(region, text) {
  if (region.textContent !== text) region.textContent = text;
}

export function groupOf(label, nodes = []) {
  const node = element("span", "group");
  node.setAttribute("role", "group");
  node.setAttribute("aria-label", label);
  node.append(...nodes);
  return node;
}

export function pictureOf(picture) {
  return Object.assign(element("img"), picture);
}
