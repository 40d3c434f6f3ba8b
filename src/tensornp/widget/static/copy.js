
// A button that copies a text.

const COPIED_FOR_MS = 1500;

// Pages that are not served securely have no clipboard but that of the selection.
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = Object.assign(document.createElement("textarea"), { value: text });
    area.style.position = "fixed";
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

function copyButton(what, text, word = "copy") {
  const button = element("button", "copy", word);
  button.type = "button";
  button.title = `Copy ${what}`;
  button.setAttribute("aria-label", button.title);
  button.addEventListener("click", async () => {
    await copyText(text());
    button.focus();
    button.textContent = "copied";
    setTimeout(() => (button.textContent = word), COPIED_FOR_MS);
  });
  return button;
}
