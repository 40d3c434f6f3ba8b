// What a page wishes of the kernel: one request is under way at most, and what is wished for meanwhile is one wish, the
// latest, so that a held key never queues up. Beside it, what nobody waits for is posted at once.

import { PENDING_AFTER_MS, Request, WAITING } from "./request.js";

// Whether nobody has gone elsewhere since something was asked for `from` there: whoever has keeps the focus.
function isFocusFree(from, root) {
  const now = document.activeElement;
  return now === from || now === document.body || root.contains(now);
}

export class Wishes {
  /** @type {(Wish & { number: number }) | undefined} */
  pending;

  // `part` has a `root`, says a text by `say`, and ends by `die`; its `next()` gives what it wishes for now and wishes it
  // no more: a `message`, with whatever it wants to know when the answer comes. `then` says where the focus goes, `from`
  // where it was.
  /** @param {Model} model @param {WishingPart} part */
  constructor(model, part) {
    this.part = part;
    this.request = new Request(model, part);
    // Each front end of the kernel gets all answers.
    this.page = `page-${Math.random().toString(36).slice(2)}`;
    this.number = 0;
  }

  pump() {
    if (this.pending || this.isDead) return;
    const wish = this.part.next();
    if (!wish) return;
    const message = this.numbered(wish.message);
    this.pending = { ...wish, number: message.number };
    this.request.send(message);
  }

  numbered(message) {
    this.number += 1;
    return { ...message, page: this.page, number: this.number };
  }

  // Returns the number, by which the answer is known.
  post(message, isSlow = false) {
    const numbered = this.numbered(message);
    this.request.post(numbered);
    clearTimeout(this.waits);
    // What is known to take long says so itself.
    if (!isSlow) this.waits = setTimeout(() => this.part.say(WAITING), PENDING_AFTER_MS);
    return numbered.number;
  }

  // Whether an answer is for this page, which then waits no longer.
  isHeard(content) {
    if (content?.page !== this.page || this.isDead) return false;
    clearTimeout(this.waits);
    return true;
  }

  // What was wished for, if this is its answer; its `then` is left out where the user has gone elsewhere.
  answered(content) {
    if (!this.pending || content.number !== this.pending.number) return undefined;
    const { then, from, ...wish } = this.pending;
    this.pending = undefined;
    this.request.end();
    return { ...wish, then: isFocusFree(from, this.part.root) ? then : undefined };
  }

  end() {
    this.isDead = true;
    this.pending = undefined;
    this.request.end();
    clearTimeout(this.waits);
  }
}
