// Changes of a page under which what was clicked stays where it is on the screen.

/** @param {Element} node @returns {Element} */
function scrollerOf(node) {
  for (let at = node.parentElement; at; at = at.parentElement) {
    const isScrolled = ["auto", "scroll"].includes(getComputedStyle(at).overflowY);
    if (isScrolled && at.scrollHeight > at.clientHeight) return at;
  }
  return document.scrollingElement ?? document.documentElement;
}

/** @param {Element} node @param {() => void} change */
export function inPlace(node, change) {
  const before = node.getBoundingClientRect().top;
  change();
  const moved = node.getBoundingClientRect().top - before;
  if (moved) scrollerOf(node).scrollTop += moved;
}
