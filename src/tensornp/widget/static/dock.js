// What every live part does that sits in a static card. This text stands before the widget's own in one module, since a
// widget is a single file to its front end.
//
// It finds its card by the anchor class, asks the kernel whether it is there, and docks when that answers and has
// emptied the output that brought it: nothing of it is saved in the notebook. Where there is no such card (pinned views,
// front ends that isolate outputs) it stays where it was rendered.

function element(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = `tensornp-${className}`;
  if (text !== undefined) node.textContent = text;
  return node;
}

function cardOf(model) {
  return model.get("anchor") && document.getElementsByClassName(model.get("anchor"))[0];
}

// `own` is the selector of what takes keys; `answered(model, card)` docks, `lost()` says that the kernel is gone,
// `rendered(model, el)` shows it without a card and returns what takes it back, `closed()` takes it out of the card.
function docking({ own, answered, lost, rendered, closed }) {
  // Keys pressed there are no commands of the notebook, but Ctrl+S still saves. Caught at the window, because Notebook 7
  // takes keys before any node of the page does.
  const keepKeys = (event) => {
    const isChord = event.ctrlKey || event.metaKey || event.altKey || event.key === "Escape";
    if (!isChord && event.target.closest?.(own)) event.stopPropagation();
  };
  // A widget may also come from a file, with no kernel behind it: only one that answers gets docked.
  let asked = false;
  const ask = (model) => {
    if (!asked) model.send({ type: "docks" });
    asked = true;
  };
  return {
    initialize({ model }) {
      model.on("change:answers", () => answered(model, cardOf(model)));
      if (lost) model.on("comm_live_update", lost);
      window.addEventListener("keydown", keepKeys, true);
      // After a reload of the page the model comes back, but not its output.
      if (cardOf(model)) ask(model);
      return () => {
        window.removeEventListener("keydown", keepKeys, true);
        closed();
      };
    },
    render({ model, el }) {
      el.classList.add("tensornp-widget");
      if (cardOf(model)) {
        ask(model);
        return undefined;
      }
      return rendered(model, el);
    },
  };
}

