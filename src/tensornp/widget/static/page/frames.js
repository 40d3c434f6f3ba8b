// One frame of a film at a time, chosen by a slider, and cut out of the picture that holds them all.

import { element, field } from "./elements.js";

// Pixels of a page that a small frame is magnified to at most.
const MAGNIFIED = 256;

/**
 * @param {string} src The picture of all frames.
 * @param {[number, number]} size Its width and height.
 * @param {Frame[]} frames
 * @returns {HTMLElement}
 */
export function filmOf(src, [wide, high], frames) {
  const { width, height } = frames[0];
  const shown = element("div", "frame");
  shown.setAttribute("role", "img");
  shown.style.width = `${width * Math.max(1, Math.floor(MAGNIFIED / Math.max(width, height)))}px`;
  shown.style.aspectRatio = `${width} / ${height}`;
  shown.style.backgroundImage = `url("${src}")`;
  // In parts of the frame, so that a narrow page makes all of it smaller.
  shown.style.backgroundSize = `${(100 * wide) / width}% ${(100 * high) / height}%`;
  const slider = field("input", "range", "slider", "Frame");
  slider.min = "0";
  slider.max = String(frames.length - 1);
  const said = element("span", "label");
  const show = (place) => {
    const { left, top, label } = frames[place];
    shown.style.backgroundPosition = `${shareOf(left, wide - width)} ${shareOf(top, high - height)}`;
    said.textContent = `frame [${label}], ${place + 1} of ${frames.length}`;
    shown.setAttribute("aria-label", said.textContent);
    slider.setAttribute("aria-valuetext", said.textContent);
    slider.value = String(place);
  };
  slider.addEventListener("input", () => show(Number(slider.value)));
  const bar = element("div", "film-bar");
  bar.append(slider, said);
  const film = element("div", "film");
  film.append(shown, bar);
  show(0);
  return film;
}

function shareOf(start, room) {
  return room ? `${(100 * start) / room}%` : "0";
}
