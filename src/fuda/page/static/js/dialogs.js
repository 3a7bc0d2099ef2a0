/** Dialogs: the keys, two versions of one sentence, settings. */

import { post } from "./api.js";
import { colour } from "./colours.js";
import { isLabel, marksOf } from "./draft.js";
import { asSentence, h } from "./dom.js";
import { keysTable } from "./keys.js";
import { fail, notice } from "./notices.js";
import { excerpt } from "./sentence.js";

/** Show a dialog until it is closed; it is removed then, and the focus returns. */
function open(title, content, { closable = true, wide = false } = {}) {
  const heading = h("h2", { id: `dialog-${Date.now()}` }, title);
  const close = closable && h("button", { type: "button", class: "quiet close", "aria-label": "Close", onclick: () => dialog.close() }, "×");
  const dialog = /** @type {HTMLDialogElement} */ (h("dialog", { "aria-labelledby": heading.id, class: wide ? "wide" : "" }, close, heading, content));
  dialog.addEventListener("close", () => {
    // Browsers let nobody forbid Escape for good; what has to be answered is asked again.
    if (closable || dialog.returnValue) dialog.remove();
    else dialog.showModal();
  });
  // A click beside the dialog hits the dialog itself, one within it hits its content.
  dialog.addEventListener("click", (event) => closable && event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

export function keysDialog() {
  return open("Keys", [
    keysTable(),
    h("p", { class: "soft" }, "Drag over words to choose them, click a label to see why. The paler a label, the less sure the model is of it."),
  ]);
}

/**
 * Two edits of one sentence: show both, and let the person say which one holds.
 * @param {import("./session.js").Session} session
 * @param {{id: number, kind: string, body: Object}} entry the refused answer
 * @param {{error: string, yours: Object, theirs: Object}} versions
 */
export function conflictDialog(session, entry, { error, yours, theirs }) {
  const side = (name, item, choose, text) =>
    h("section", { class: "version" }, h("h3", {}, name), sideText(item, session.state), h("button", { type: "button", class: "primary", onclick: choose }, text));
  const dialog = open(
    "Two versions of one sentence",
    [
      h("p", {}, asSentence(error)),
      h(
        "div",
        { class: "versions" },
        side("Yours", yours, () => (dialog.close("mine"), session.insist(entry, theirs.version)), "Keep mine"),
        side("Theirs", theirs, () => (dialog.close("theirs"), session.giveWay(entry.id)), "Keep theirs"),
      ),
    ],
    { closable: false, wide: true },
  );
}

function sideText(item, { unit, outside }) {
  if (item.status === "skipped") return h("p", { class: "soft" }, "skipped");
  const marks = marksOf(item).filter((mark) => isLabel(mark.label, outside));
  return h("p", { class: "version-text" }, excerpt(item, marks.map((mark) => ({ ...mark, by: "person" })), { nodes: unit === "nodes" }));
}

const ORDERS = {
  useful: "Most useful first: unsure, and unlike those just seen",
  file: "In the order of the file",
  disagreement: "Where model and given labels disagree",
};

/** @param {import("./session.js").Session} session */
export function settingsDialog(session) {
  const { state } = session;
  const change = async (what) => {
    try {
      session.setState(await post("/api/settings", what));
      if (what.order) session.reorder();
    } catch (error) {
      fail(error);
    }
  };
  const radios = (name, title, options, chosen) =>
    h(
      "fieldset",
      {},
      h("legend", {}, title),
      options.map(([value, text]) =>
        h("label", { class: "option" }, h("input", { type: "radio", name, value, checked: value === chosen, onchange: () => change({ [name]: value }) }), h("span", {}, text)),
      ),
    );
  return open("Settings", [
    radios("order", "Which sentence next", state.orders.map((name) => [name, ORDERS[name] ?? name]), state.order),
    radios("learner", "Learner", state.learners.map(({ name, text }) => [name, text || name]), state.learner),
    state.feature_sets.length > 0 && radios("features", "Features that it looks at", state.feature_sets.map(({ name, text }) => [name, text]), state.features),
    labelSet(session),
  ]);
}

function labelSet(session) {
  const list = h("p", { class: "label-set" });
  const draw = () => list.replaceChildren(...session.state.labels.map((label) => h("span", { class: `chip ${colour(label)}` }, label)));
  const field = h("input", { type: "text", id: "new-label", maxlength: 60, autocomplete: "off", spellcheck: "false", required: true });
  const add = async (event) => {
    event.preventDefault();
    const name = field.value.trim();
    if (!name) return;
    try {
      session.setState(await post("/api/labels", { add: name }));
      field.value = "";
      draw();
      notice(`Label ${name} added.`);
    } catch (error) {
      fail(error);
    }
  };
  draw();
  return h(
    "fieldset",
    {},
    h("legend", {}, "Labels"),
    list,
    h("form", { class: "row", onsubmit: add }, h("label", { for: "new-label" }, "New label"), field, h("button", { type: "submit" }, "Add")),
  );
}
