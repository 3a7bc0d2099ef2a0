/** The sentences just answered, to return to when a mistake is noticed a moment too late. */

import { h, plural } from "./dom.js";
import { isLabel, marksOf } from "./draft.js";
import { excerpt } from "./sentence.js";

const KEPT = 4;

/** @param {import("./session.js").Session} session @returns {HTMLElement} */
export function recentList(session) {
  const list = h("ol", { class: "rows" });
  const element = h("section", { class: "recent", hidden: true }, h("h2", {}, "Just answered"), list);

  session.addEventListener("sent", ({ detail: { entry, answer } }) => {
    drop(entry.id);
    list.prepend(row(answer.item, answer.taught));
    while (list.children.length > KEPT) list.lastElementChild.remove();
    element.hidden = false;
  });
  session.addEventListener("undone", ({ detail }) => detail.item && drop(detail.item.id));

  function drop(id) {
    list.querySelector(`[data-id="${id}"]`)?.remove();
    element.hidden = !list.children.length;
  }

  function row(item, taught) {
    const { unit, outside } = session.state;
    const marks = marksOf(item).filter((mark) => isLabel(mark.label, outside));
    const what = item.status === "skipped" ? "skipped" : taught?.changed ? `${plural(taught.changed, "word", "words")} changed` : "as proposed";
    return h(
      "li",
      { "data-id": item.id },
      h("a", { href: `#label/${item.id}`, class: "row-link" }, excerpt(item, marks, { nodes: unit === "nodes" }), h("span", { class: "soft small" }, what)),
    );
  }

  return element;
}
