// Controls beside each other of which the Tab key stops at one, from which keys go on to the others.

export class Stops {
  // `all()` gives those that are there now, and `keys` are those that go back and on.
  constructor(all, [back, on]) {
    this.all = all;
    this.back = back;
    this.on = on;
  }

  at(node) {
    const all = this.all();
    const stop = all.includes(node) ? node : all[0];
    for (const one of all) {
      if (one === stop) one.removeAttribute("tabindex");
      else one.tabIndex = -1;
    }
  }

  // The one that the Tab key stops at.
  now() {
    return this.all().find((one) => one.tabIndex === 0);
  }

  key({ key, target }) {
    const all = this.all();
    const at = all.indexOf(target);
    const to = { [this.back]: at - 1, [this.on]: at + 1, Home: 0, End: all.length - 1 }[key];
    if (at < 0 || to === undefined) return false;
    all[Math.min(Math.max(to, 0), all.length - 1)].focus();
    return true;
  }
}
