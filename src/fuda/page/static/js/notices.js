/** Short notices at the edge of the page, and the line about the connection. */

import { $, asSentence, h } from "./dom.js";

/** Milliseconds; what went wrong is there for longer. */
const STAYS = { news: 6000, error: 20_000 };

/**
 * @param {string} text
 * @param {{kind?: "news"|"error", action?: {text: string, run: () => void}}} [options]
 */
export function notice(text, { kind = "news", action } = {}) {
  const close = () => element.remove();
  const element = h(
    "div",
    { class: `notice ${kind}` },
    h("p", {}, text),
    action && h("button", { type: "button", class: "quiet", onclick: () => (close(), action.run()) }, action.text),
    h("button", { type: "button", class: "quiet", "aria-label": "Dismiss", onclick: close }, "×"),
  );
  const all = $("notices");
  all.append(element);
  while (all.children.length > 3) all.firstElementChild.remove();
  setTimeout(close, STAYS[kind]);
}

/** Show what went wrong, in the server's words where it has some. */
export function fail(error) {
  notice(asSentence(error.message), { kind: "error" });
}

/** Say that the connection is lost, or that it is back. */
export function connection(text) {
  const line = $("connection");
  line.hidden = !text;
  line.textContent = text ?? "";
}
