/** All sentences, by state, label and words. */

import { get } from "./api.js";
import { debounced, h, plural, put } from "./dom.js";
import { isLabel, marksOf } from "./draft.js";
import { fail } from "./notices.js";
import { excerpt } from "./sentence.js";

const PAGE = 50;
const STATES = [["", "all"], ["new", "new"], ["done", "done"], ["skipped", "skipped"]];

export class ListView {
  /** @param {import("./session.js").Session} session */
  constructor(session) {
    this.session = session;
    this.filter = { status: "", label: "", search: "" };
    this.count = h("p", { class: "soft", role: "status" });
    this.rows = h("ol", { class: "rows" });
    this.more = h("button", { type: "button", class: "plain", hidden: true, onclick: () => this.#load(false) }, "More");
    this.labels = h("select", { id: "list-label", onchange: (event) => this.#set({ label: event.target.value }) });
    const search = debounced((text) => this.#set({ search: text }), 200);
    this.element = h(
      "div",
      { class: "list-view column" },
      h("h2", { class: "unseen" }, "Sentences"),
      h(
        "form",
        { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
        h("input", { type: "search", "aria-label": "Search words", placeholder: "Search words", oninput: (event) => search(event.target.value) }),
        h("fieldset", { class: "segments" }, h("legend", { class: "unseen" }, "State"), STATES.map(([value, text]) => this.#segment(value, text))),
        h("label", { class: "inline", for: "list-label" }, "Label ", this.labels),
      ),
      this.count,
      this.rows,
      this.more,
    );
  }

  entered() {
    const options = ["", ...this.session.state.labels].map((label) => h("option", { value: label }, label || "any"));
    put(this.labels, options).value = this.filter.label;
    this.#load(true);
  }

  #segment(value, text) {
    return h("label", {}, h("input", { type: "radio", name: "status", value, checked: value === this.filter.status, onchange: () => this.#set({ status: value }) }), h("span", {}, text));
  }

  #set(part) {
    Object.assign(this.filter, part);
    this.#load(true);
  }

  async #load(anew) {
    const turn = (this.turn = Symbol("turn"));
    const offset = anew ? 0 : this.rows.children.length;
    try {
      const { total, items } = await get("/api/items", { ...this.filter, offset, limit: PAGE });
      if (turn !== this.turn) return; // a later filter was quicker
      if (anew) put(this.rows);
      this.rows.append(...items.map((item) => this.#row(item)));
      this.more.hidden = this.rows.children.length >= total;
      this.count.textContent = total ? plural(total, "sentence", "sentences") : "No sentence is like this.";
    } catch (error) {
      fail(error);
    }
  }

  #row(item) {
    const { unit, outside } = this.session.state;
    const marks = marksOf({ source: item.status === "done" ? "person" : "model", ...item }).filter((m) => isLabel(m.label, outside));
    return h(
      "li",
      {},
      h(
        "a",
        { href: `#label/${item.id}`, class: "row-link" },
        h("span", { class: "number" }, item.id),
        excerpt(item, marks, { nodes: unit === "nodes" }),
        item.status !== "new" && h("span", { class: `pill ${item.status}` }, item.status),
      ),
    );
  }
}
