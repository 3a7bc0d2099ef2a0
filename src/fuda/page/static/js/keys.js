/** What the keys do. The table is also what the page shows for "?". */

import { h } from "./dom.js";

const TABLE = [
  ["Enter", "accept the sentence as shown; the model learns from it and the next one appears"],
  ["1 … 9, 0", "give the chosen words this label"],
  ["Backspace", "take the label away"],
  ["S", "skip the sentence"],
  ["Z", "undo: changes of this sentence first, then answers, any number"],
  ["← →", "go from word to word; with Shift, choose several"],
  ["↑ ↓", "to the label before or after; in trees to the head or the first dependent"],
  ["W", "why the chosen words have their label"],
  ["L", "find a label by its name, or add one"],
  ["P, N", "previous and next among the sentences seen"],
  ["Esc", "choose nothing, close the panel"],
  ["?", "these keys"],
];

/**
 * Keys that act on an editor wherever it stands.
 * @param {KeyboardEvent} event
 * @param {import("./editor.js").Editor} editor
 * @param {(key: string) => string|undefined} labelOf
 * @returns {boolean} whether the key was one of them
 */
export function editorKey(event, editor, labelOf) {
  const actions = {
    ArrowLeft: () => editor.move(editor.mirrored ? 1 : -1, event.shiftKey),
    ArrowRight: () => editor.move(editor.mirrored ? -1 : 1, event.shiftKey),
    ArrowUp: () => editor.jump(-1),
    ArrowDown: () => editor.jump(1),
    Backspace: () => editor.remove(),
    Delete: () => editor.remove(),
  };
  const label = labelOf(event.key);
  const action = actions[event.key] ?? (label === undefined ? null : () => editor.label(label));
  if (!action) return false;
  event.preventDefault();
  action();
  return true;
}

/** Whether a key goes to a field, a menu or a dialog rather than to the page. */
export function isTaken(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return true;
  const target = event.target;
  if (target.closest("input:not([type=radio]):not([type=checkbox]), textarea, select, dialog, [popover]")) return true;
  // Enter and Space press the button that has the focus.
  return (event.key === "Enter" || event.key === " ") && Boolean(target.closest("a, button, summary, [role=button]"));
}

/** The table of keys. */
export function keysTable() {
  return h(
    "table",
    { class: "keys" },
    h("tbody", {}, TABLE.map(([key, text]) => h("tr", {}, h("th", { scope: "row" }, key.split(" ").map(keyCap)), h("td", {}, text)))),
  );
}

function keyCap(part) {
  if (part === "…") return "… ";
  const comma = part.endsWith(",");
  return [h("kbd", {}, comma ? part.slice(0, -1) : part), comma ? ", " : " "];
}
