// Tabs, of which one is shown: the Tab key stops at the chosen one, and arrows go on to the next.

import { button, element } from "./elements.js";

export class Tabs {
  // Each of `tabs` has a `name`, a `text`, a `title` and the `node` that it shows; `chose(name)` is told of each choice.
  constructor(label, tabs, chose) {
    this.chose = chose;
    this.tabs = tabs;
    // Each widget of a page has this module for itself.
    const id = `tensornp-tab-${Math.random().toString(36).slice(2)}`;
    this.node = element("span", "tabs");
    this.node.setAttribute("role", "tablist");
    this.node.setAttribute("aria-label", label);
    this.buttons = tabs.map(({ name, text, title, node }) => {
      const tab = button(text, title, () => this.choose(name), "tab");
      tab.id = `${id}-${name}`;
      node.id = `${tab.id}-panel`;
      node.setAttribute("role", "tabpanel");
      node.setAttribute("aria-labelledby", tab.id);
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-controls", node.id);
      return tab;
    });
    this.node.append(...this.buttons);
    this.show(tabs[0].name);
  }

  show(name) {
    this.shown = name;
    this.tabs.forEach((tab, i) => {
      const isShown = tab.name === name;
      tab.node.hidden = !isShown;
      this.buttons[i].setAttribute("aria-selected", String(isShown));
      this.buttons[i].tabIndex = isShown ? 0 : -1;
    });
  }

  has(name) {
    return this.tabs.some((tab) => tab.name === name);
  }

  choose(name) {
    this.show(name);
    this.chose(name);
  }

  // What the Tab key stops at.
  chosen() {
    return this.buttons.find((tab) => tab.tabIndex === 0);
  }

  // Returns whether the key was used. What costs something is chosen by Enter or a click, and not on the way to another.
  key({ key, target }) {
    const at = this.buttons.indexOf(target);
    const { length } = this.buttons;
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: length - 1 }[key];
    if (at < 0 || to === undefined) return false;
    this.buttons[(to + length) % length].focus();
    return true;
  }
}
