// What every live part does that sits in a static card.
//
// One model moves from card to card: it finds the card by the anchor class, whenever that comes into the page (the cell
// may be moved, or scrolled out of sight and back), and docks once the kernel has answered. Nothing of it is an output,
// so nothing is saved in the notebook. A view that stands alone, or one in a front end that isolates outputs, is
// rendered instead.

import { element, focused } from "./elements.js";

// The first message of all may come before the page has a subshell, and then waits for a running cell: twice as long
// each time.
const ASK_AGAIN_MS = 500;
const MAX_TRIES = 6;
export const GONE = "the kernel of this card is gone; run the cell again";

// What the kernel would have to answer is offered no more.
export function disable(root) {
  root.classList.add("tensornp-dead");
  for (const control of root.querySelectorAll("input, select, button")) control.disabled = true;
}

export function stopListening(model, listeners) {
  for (const [event, listener] of Object.entries(listeners)) model.off(event, listener);
}
const DOCUMENTS = ".jp-NotebookPanel, .jp-CodeConsole";
// Save, run the cell, back to the notebook.
const OPEN_CHORDS = new Set(["s", "Enter", "Escape"]);

/** @param {Model} model @returns {HTMLElement[]} */
function cardsOf(model) {
  const anchor = model.get("anchor");
  return anchor ? /** @type {HTMLElement[]} */ ([...document.getElementsByClassName(anchor)]) : [];
}

// What is said in a card that the part has left, or nothing.
function setParting(card, words) {
  card?.querySelector(".tensornp-parting")?.remove();
  if (words) card?.append(element("small", "parting", words));
}

// Styles the page as a front end does that makes parts in it.
function dress(css) {
  const isWorn = [...document.querySelectorAll("style[data-tensornp]")].some((one) => one.textContent === css);
  if (isWorn) return;
  const style = document.createElement("style");
  style.dataset.tensornp = "";
  style.textContent = css;
  document.head.append(style);
}

// Returns what keeps keys that are pressed in `own` from the notebook, and gives them to `keys`.
function guardOf(own, keys) {
  // Keys pressed there are no commands of the notebook, but Ctrl+S still saves, and Ctrl+Enter runs the cell. Caught at
  // the window, because Notebook 7 takes keys before any node of the page does.
  const keydown = (event) => {
    if (!event.target.closest?.(own)) return;
    const isChord = event.ctrlKey || event.metaKey || event.key === "Escape";
    const isUsed = keys?.(event);
    if (isUsed) event.preventDefault();
    // Other chords would merge cells, move or delete them; what the browser itself does with a key goes on.
    if (isUsed || !isChord || !OPEN_CHORDS.has(event.key)) event.stopPropagation();
  };
  // Where the prompt of the same cell is clicked, JupyterLab leaves the focus where it is, and so the keys.
  const pointerdown = ({ target }) => {
    const had = focused();
    if (had?.closest(own) && !target.closest?.(own)) had.blur();
  };
  const listeners = Object.entries({ keydown, pointerdown });
  return {
    begin: () => listeners.forEach(([event, listener]) => window.addEventListener(event, listener, true)),
    end: () => listeners.forEach(([event, listener]) => window.removeEventListener(event, listener, true)),
  };
}

/**
 * A widget that docks.
 *
 * @param {object} part
 * @param {string} part.own The selector of what takes keys.
 * @param {(model: Model, card: HTMLElement) => () => void} part.dock Puts a part into a card, and returns what takes it out.
 * @param {(model: Model, el: HTMLElement) => () => void} part.rendered Shows it without a card, and returns what takes it back.
 * @param {() => void} [part.answered] Comes with each answer of the kernel.
 * @param {() => void} [part.lost] Comes when the kernel is gone.
 * @param {(event: KeyboardEvent) => boolean | undefined} [part.keys] Returns whether it has used a key.
 * @param {string} [part.taken] The attribute of what such a part sits in.
 */
export function docking({ own, dock, rendered, answered, lost, keys, taken = "data-tensornp-live" }) {
  const guard = guardOf(own, keys);
  return {
    initialize({ model }) {
      // A widget may also come from a file, with no kernel behind it: only one that answers gets docked.
      let isAlive = false;
      let tries = 0;
      let timer;
      let docked;
      let home;
      const observer = new MutationObserver(() => place());
      const leave = (words = "") => {
        if (!docked) return;
        docked.undock();
        docked.card.removeAttribute(taken);
        setParting(docked.card, words);
        docked = undefined;
      };
      const close = () => {
        clearTimeout(timer);
        observer.disconnect();
        guard.end();
        leave();
      };
      const ask = () => {
        if (isAlive || tries >= MAX_TRIES || !model.get("anchor")) return;
        clearTimeout(timer);
        try {
          model.send({ type: "docks" });
          timer = setTimeout(ask, ASK_AGAIN_MS * 2 ** tries);
          tries += 1;
        } catch {
          // The page keeps the widgets of a notebook that was closed, and tells them nothing.
          close();
        }
      };
      const place = () => {
        if (!isAlive || docked?.card.isConnected) return;
        // A notebook and a console on one kernel have a model each, and a card takes one. One that was pasted into
        // another notebook, where a name bound here would not be found, gets none.
        const isElsewhere = (one) => home?.isConnected && !home.contains(one);
        const free = cardsOf(model).filter((one) => !one.hasAttribute(taken) && !isElsewhere(one));
        // A copy of the notebook, open in another tab, may hold the same.
        const card = free.find((one) => one.offsetParent) ?? free[0];
        if (!card) return;
        if (docked) {
          // The page has made the card anew, perhaps for another model: whoever still has a kernel docks again.
          leave();
          isAlive = false;
          tries = 0;
          ask();
          return;
        }
        setParting(card, "");
        card.setAttribute(taken, "");
        home = card.closest(DOCUMENTS);
        docked = { card, undock: dock(model, card) };
      };
      model.on("change:anchor", () => {
        leave(model.get("parting"));
        home = undefined;
        ask();
        place();
      });
      model.on("change:answers", () => {
        isAlive = true;
        clearTimeout(timer);
        place();
        answered?.();
      });
      model.on("comm_live_update", () => {
        isAlive = false;
        lost?.();
      });
      observer.observe(document.body, { childList: true, subtree: true });
      guard.begin();
      ask();
      return close;
    },
    render({ model, el }) {
      el.classList.add("tensornp-widget");
      el.dir = "ltr";
      // marimo makes a part in a box of its own, with its style there: where that is not seen, the part goes to its card.
      const { host } = /** @type {ShadowRoot} */ (el.getRootNode());
      if (host?.closest("[hidden]")) {
        dress(model.get("_css"));
        return undefined;
      }
      return cardsOf(model).length ? undefined : rendered(model, el);
    },
  };
}

// The widget of a part that takes keys, of which each card has one of its own: a `View` is made of a model, docks into a
// card or any other node, and has a `root`, `key(event)`, `die()` and `leave()`.
/** @param {any} View @param {string} own @param {string} [taken] */
export function dockingEach(View, own, taken) {
  const all = new Set();
  let isLost = false;
  const add = (model, place) => {
    const one = new View(model);
    all.add(one);
    one.dock(place);
    if (isLost) one.die();
    return () => {
      one.leave();
      all.delete(one);
    };
  };
  return docking({
    own,
    taken,
    dock: add,
    rendered: add,
    keys: (event) => [...all].find((one) => one.root.contains(event.target))?.key?.(event),
    lost: () => {
      isLost = true;
      all.forEach((one) => one.die());
    },
  });
}
