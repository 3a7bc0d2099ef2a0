/** A training sentence opened in place, small, to be corrected there. */

import { colour } from "./colours.js";
import { Draft } from "./draft.js";
import { Editor } from "./editor.js";
import { h } from "./dom.js";
import { editorKey } from "./keys.js";

/**
 * @param {Object} item
 * @param {Object} state
 * @param {{node?: number, matched?: number[]}} evidence the node, and the words that match
 * @param {(answer: Object) => Promise<void>} save
 * @returns {HTMLElement}
 */
export function corrector(item, state, evidence, save) {
  const draft = new Draft(item, state);
  const host = h("div", { class: "sentence small-text", tabindex: 0, role: "group", dir: "auto" });
  const button = h("button", { type: "button", class: "primary", disabled: true, onclick: run }, "Save the correction");
  const editor = new Editor(host, {
    onchange: () => {
      button.disabled = !draft.touched;
    },
  });
  const labelOf = (key) => (/^[0-9]$/.test(key) ? state.labels[(Number(key) + 9) % 10] : undefined);
  const labels = state.labels.map((label) =>
    h("button", { type: "button", class: `pick ${colour(label)}`, onclick: () => editor.label(label) }, h("bdi", {}, label)),
  );
  const none = (!draft.nodes || state.outside !== null) && h("button", { type: "button", class: "pick k", onclick: () => editor.remove() }, "none");
  editor.lit = new Set(evidence.matched ?? []);
  editor.show(item, draft, Boolean(item.heads));
  if (evidence.node !== undefined) {
    const mark = draft.at(evidence.node);
    editor.select(mark?.start ?? evidence.node, mark ? mark.end - 1 : evidence.node);
  }
  host.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" && event.target === host && draft.touched) {
      event.preventDefault();
      run();
    } else if (!editorKey(event, editor, labelOf)) return;
    event.stopPropagation();
  });

  async function run() {
    button.disabled = true;
    await save(draft.answer());
    button.disabled = !draft.touched;
  }

  const where = h("p", { class: "soft small place" }, item.place ?? "");
  return h("div", { class: "corrector" }, where, host, h("div", { class: "palette small-text" }, labels, none), button);
}
