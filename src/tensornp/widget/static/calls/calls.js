// The calls of a pass as a tree; each opens into its inputs and outputs.

import { docking } from "../page/docking.js";
import { button, element } from "../page/elements.js";
import { Tree } from "../tree/tree.js";

class Calls extends Tree {
  constructor(model, ask) {
    super(model, ask, { kind: "calls", label: `Calls of ${model.get("label")}`, unsorted: "the order of the calls" });
    const code = model.get("finder");
    const again = `Run the cell again, with all that it does, as ${code.split("\n")[0].trim()}`;
    this.found = element("div");
    this.finder = button("Find the operator", again, () => this.find(model.widget_manager.kernel, code));
    if (code && model.widget_manager?.kernel) this.controls.append(this.finder);
  }

  // The page runs it, as it runs a cell, and not a message to the widget, which nobody could interrupt.
  async find(kernel, code) {
    this.finder.textContent = "running the cell again …";
    this.found.replaceChildren();
    this.root.parentElement.after(this.found);
    const future = kernel.requestExecute({ code, stop_on_error: false });
    future.onIOPub = ({ content }) => this.found.insertAdjacentHTML("beforeend", content.data?.["text/html"] ?? "");
    const failed = ({ message }) => ({ content: { ename: "not run", evalue: message } });
    const { ename, evalue } = (await future.done.catch(failed)).content;
    this.finder.textContent = "Find the operator";
    this.say(ename ? { text: `${ename}: ${evalue}`, type: "error" } : { text: "" });
  }

  leave() {
    this.found.remove();
    super.leave();
  }
}

export default () => docking(Calls);
