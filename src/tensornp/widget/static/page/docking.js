// What every live part does that sits in a static card: it finds the card by the anchor class, whenever that comes into
// the page, and docks once the kernel has answered. Nothing of it is an output, so nothing is saved in the notebook. A
// part that stands alone, or one in a front end that isolates outputs, is rendered instead.

import { GONE, asking } from "./ask.js";
import { focused } from "./elements.js";

// The first message of all may come before the page has a subshell, and then waits for a running cell.
const ASK_AGAIN_MS = [0, 500, 1500, 3500, 7500, 15500];
const TAKEN = "data-tensornp-live";

export function stopListening(model, listeners) {
  for (const [event, listener] of Object.entries(listeners)) model.off(event, listener);
}

// Calls `change`, and scrolls so that `node` stays where it is on the screen.
export function inPlace(node, change) {
  const before = node.getBoundingClientRect().top;
  change();
  const moved = node.getBoundingClientRect().top - before;
  if (!moved) return;
  let scroller = node.parentElement;
  const isScroller = (one) => /auto|scroll/.test(getComputedStyle(one).overflowY) && one.scrollHeight > one.clientHeight;
  while (scroller && !isScroller(scroller)) scroller = scroller.parentElement;
  (scroller ?? document.documentElement).scrollTop += moved;
}

function dress(css) {
  if ([...document.querySelectorAll("style[data-tensornp]")].some((one) => one.textContent === css)) return;
  const style = document.createElement("style");
  style.dataset.tensornp = "";
  style.textContent = css;
  document.head.append(style);
}

// Keys pressed in `place` are for the part: `key(event)` returns whether it has used one. Escape gives the focus back.
// Caught at the window, because Notebook 7 takes keys before any node of the page does. Returns what ends it.
function guard(place, key) {
  const keydown = (event) => {
    if (!place.contains(event.target)) return;
    if (key(event)) event.preventDefault();
    else if (event.key === "Escape") {
      place.parentElement?.closest("[tabindex]")?.focus({ preventScroll: true });
      if (place.contains(focused())) focused().blur();
      return;
    } else {
      const isChord = event.ctrlKey || event.metaKey;
      if (event.key === "Enter" && (isChord || event.shiftKey)) return;
      if (event.key === "s" && isChord) return;
    }
    event.stopPropagation();
  };
  // Where the prompt of the same cell is clicked, JupyterLab leaves the focus where it is, and so the keys.
  const pointerdown = ({ target }) => {
    const had = focused();
    if (had && place.contains(had) && !place.contains(target)) had.blur();
  };
  window.addEventListener("keydown", keydown, true);
  window.addEventListener("pointerdown", pointerdown, true);
  return () => {
    window.removeEventListener("keydown", keydown, true);
    window.removeEventListener("pointerdown", pointerdown, true);
  };
}

// Follows the card of a model: `put(card)` docks a part into it, and returns what takes it out. Returns what ends it.
function follow(model, put) {
  // A widget may also come from a file, with no kernel behind it: only one that answers gets docked.
  let isAlive = false;
  let tries = [];
  let docked;
  const own = asking(model, () => {});
  const leave = () => {
    docked?.undock();
    docked?.card.removeAttribute(TAKEN);
    docked = undefined;
  };
  const stop = () => tries.forEach(clearTimeout);
  const place = () => {
    if (!isAlive || docked?.card.isConnected) return;
    const anchor = model.get("anchor");
    const cards = anchor ? [...document.getElementsByClassName(anchor)] : [];
    const card = cards.find((one) => !one.hasAttribute(TAKEN));
    if (card && docked) {
      // The page has made the card again, perhaps for another model: only one with a kernel docks again.
      leave();
      begin();
    } else if (card) {
      card.setAttribute(TAKEN, "");
      docked = { card, undock: put(card) };
    }
  };
  const answered = () => {
    stop();
    isAlive = true;
    place();
  };
  const begin = () => {
    stop();
    isAlive = false;
    if (!model.get("anchor")) return;
    tries = ASK_AGAIN_MS.map((wait) => setTimeout(() => own.ask({ type: "docks" }, true).then(answered), wait));
  };
  const observer = new MutationObserver(place);
  observer.observe(document.body, { childList: true, subtree: true });
  model.on("change:anchor", () => {
    leave();
    begin();
  });
  model.on("comm_live_update", () => {
    isAlive = false;
  });
  begin();
  return () => {
    stop();
    observer.disconnect();
    own.close();
    leave();
  };
}

// A widget whose `Part` is made with a model and its `ask`, once for each place that it docks into. It has a `root`,
// `dock(place)`, `say({ text, type })`, `key(event)`, `reread()` for values, `die()` and `leave()`.
export function docking(Part) {
  const all = new Set();
  let isLost = false;
  const die = ({ part, close }) => {
    close();
    part.die();
    part.root.classList.add("tensornp-dead");
    for (const one of part.root.querySelectorAll("input, select, button")) one.disabled = true;
    part.say({ text: GONE, type: "error" });
  };
  const put = (model, place) => {
    const { ask, close } = asking(model, (text) => part.say({ text }));
    const part = new Part(model, ask);
    const one = { part, close };
    all.add(one);
    part.dock(place);
    const end = guard(place, (event) => part.key(event));
    // The page renders a widget again when its cell is moved.
    if (isLost) die(one);
    return () => {
      close();
      end();
      part.leave();
      all.delete(one);
    };
  };
  return {
    initialize({ model }) {
      model.on("msg:custom", (content) => content?.type === "again" && all.forEach(({ part }) => part.reread?.()));
      model.on("comm_live_update", () => {
        isLost = true;
        all.forEach(die);
      });
      return follow(model, (card) => put(model, card));
    },
    render({ model, el }) {
      el.classList.add("tensornp-widget");
      el.dir = "ltr";
      // marimo makes a part in a box of its own, with its style there: where that is not seen, the part goes to its card.
      const { host } = el.getRootNode();
      if (host?.closest("[hidden]")) {
        dress(model.get("_css"));
        return undefined;
      }
      const anchor = model.get("anchor");
      return anchor && document.getElementsByClassName(anchor).length ? undefined : put(model, el);
    },
  };
}
