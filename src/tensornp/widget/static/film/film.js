// A slider over the frames of a film, above the static picture of all of them.

import { docking } from "../page/docking.js";
import { filmOf } from "../page/frames.js";

function placeIn(model, card, src) {
  const film = filmOf(src, model.get("size"), model.get("frames"));
  card.prepend(film);
  return () => film.remove();
}

export default () =>
  docking({
    own: ".tensornp-film",
    dock: (model, card) => placeIn(model, card, card.querySelector("img")?.src ?? ""),
    rendered: (model, el) => placeIn(model, el, model.get("src")),
  });
