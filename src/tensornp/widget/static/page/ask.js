// Requests to the kernel. Each has a number, and its answer has the same.

const WAITING_AFTER_MS = 150;
export const GONE = "the kernel of this card is gone; run the cell again";

// Returns `ask(message)`, whose promise gives the answer, and `close()`. Where a later request took over, the promise
// stays open. `say` tells that the kernel is slow; where an answer takes long anyway, `isSlow` leaves that out.
export function asking(model, say) {
  // Every page of the kernel receives all answers.
  const page = `page-${Math.random().toString(36).slice(2)}`;
  const waiting = new Map();
  let number = 0;
  let isClosed = false;

  const hear = (content, buffers) => {
    const request = content?.page === page ? waiting.get(content.number) : undefined;
    if (!request) return;
    waiting.delete(content.number);
    clearTimeout(request.timer);
    if (request.isLate) say("");
    request.resolve({ ...content, buffers: buffers ?? [] });
  };

  const close = () => {
    isClosed = true;
    for (const { timer } of waiting.values()) clearTimeout(timer);
    waiting.clear();
    model.off("msg:custom", hear);
  };

  const ask = (message, isSlow = false) =>
    new Promise((resolve) => {
      if (isClosed) return;
      number += 1;
      const request = { resolve, isLate: false, timer: 0 };
      const wait = () => {
        request.isLate = true;
        say("waiting for the kernel …");
      };
      if (!isSlow) request.timer = setTimeout(wait, WAITING_AFTER_MS);
      waiting.set(number, request);
      try {
        model.send({ ...message, page, number });
      } catch {
        // The page keeps the widgets of a closed notebook, and refuses to send for them.
        close();
        say(GONE);
      }
    });

  model.on("msg:custom", hear);
  return { ask, close };
}

// Returns a function that runs `run` once at a time. Calls made meanwhile become one more run, so that a held key never
// queues up: `run` reads what is wished for when it begins.
export function latest(run) {
  let isRunning = false;
  let isWanted = false;
  return async () => {
    isWanted = true;
    if (isRunning) return;
    isRunning = true;
    while (isWanted) {
      isWanted = false;
      await run();
    }
    isRunning = false;
  };
}
