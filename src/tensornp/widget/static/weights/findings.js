// What a scan has found, above the tree: the most serious first, what is not finite in amber, each with a way to it.

import { button, element } from "../page/elements.js";

export class Findings {
  // `open(weight, goal)` shows a weight, at what is sought in it; `list(what)` lists those that have this.
  constructor({ open, list }) {
    this.open = open;
    this.list = list;
    this.node = element("div", "found");
    this.node.hidden = true;
  }

  paint(findings) {
    this.node.replaceChildren(...findings.map((one) => this.said(one)));
    this.node.hidden = findings.length === 0;
  }

  said({ text, what, isAlarm, name, more, number, goal }) {
    const node = element("span", "finding");
    if (!name) {
      node.textContent = text;
      node.classList.add("tensornp-note");
      return node;
    }
    const title = goal ? "Show the values there" : "Show this weight";
    const link = button(name, title, () => this.open(number, goal), "copy tensornp-link");
    link.setAttribute("aria-label", `${text}: ${name}`);
    node.append(element("span", isAlarm ? "alarm" : "", text), document.createTextNode(isAlarm ? " " : ": "), link);
    if (more) {
      const others = button(`and ${more.toLocaleString("en")} more`, "List them", () => this.list(what), "copy tensornp-link");
      node.append(document.createTextNode(" "), others);
    }
    return node;
  }
}
