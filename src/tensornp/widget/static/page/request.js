// What is asked of the kernel. One that has not answered after a moment is said to be waited for, and one that stays
// without an answer is asked once more: by the number in the message, the kernel knows it again.

export const PENDING_AFTER_MS = 150;
const LATE_AFTER_MS = 5000;
export const WAITING = "waiting for the kernel …";
const LATE = "the kernel has not answered yet: it may be busy with a cell; if it is idle, reload the page";

export class Request {
  // `part` has a `root`, says a text by `say`, and ends by `die`.
  /** @param {Model} model @param {Part} part */
  constructor(model, part) {
    this.model = model;
    this.part = part;
  }

  send(message) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.wait(message), PENDING_AFTER_MS);
    this.post(message);
  }

  // Where the kernel was shut down, the page says so to nobody, and refuses to send.
  post(message) {
    try {
      this.model.send(message);
    } catch {
      this.part.die();
    }
  }

  wait(message) {
    this.part.root.classList.add("tensornp-waiting");
    this.part.say(WAITING);
    this.timer = setTimeout(() => {
      this.part.say(LATE);
      this.post(message);
    }, LATE_AFTER_MS);
  }

  // Nothing is waited for any more.
  end() {
    clearTimeout(this.timer);
    this.part.root.classList.remove("tensornp-waiting");
  }
}
