/** Labels that the rest of the data contradict, most doubtful first. */

import { Conflict, get, post } from "./api.js";
import { colour } from "./colours.js";
import { conflictDialog } from "./dialogs.js";
import { Draft } from "./draft.js";
import { h, percent, plural, put, speak } from "./dom.js";
import { fail } from "./notices.js";
import { excerpt } from "./sentence.js";

const PAGE = 30;

export class DoubtsView {
  /** @param {import("./session.js").Session} session */
  constructor(session) {
    this.session = session;
    this.start = h("button", { type: "button", class: "primary", onclick: () => this.#start() }, "Look for doubtful labels");
    this.bar = h("progress", { max: 1, hidden: true, "aria-label": "Looking for doubtful labels" });
    this.state = h("p", { class: "soft", role: "status" });
    this.rows = h("ol", { class: "rows doubts" });
    this.more = h("button", { type: "button", class: "plain", hidden: true, onclick: () => this.#load(false) }, "More");
    this.element = h(
      "div",
      { class: "doubts-view column" },
      h("h2", {}, "Doubtful labels"),
      h("p", { class: "lead" }, "Each label is compared with what the rest of the data would say about it. The most doubtful ones come first."),
      h("div", { class: "row" }, this.start, this.bar),
      this.state,
      this.rows,
      this.more,
    );
    session.addEventListener("doubts", ({ detail }) => this.#progress(detail.progress));
  }

  entered() {
    this.#load(true);
  }

  async #start() {
    try {
      await post("/api/doubts", {});
      this.#progress(0);
      await this.#load(true);
    } catch (error) {
      fail(error);
    }
  }

  #progress(done) {
    this.bar.hidden = done >= 1;
    this.bar.value = done;
    if (done >= 1 && this.element.isConnected) this.#load(true);
  }

  async #load(anew) {
    const offset = anew ? 0 : this.rows.children.length;
    try {
      const answer = await get("/api/doubts", { offset, limit: PAGE });
      const running = !answer.ready && answer.progress > 0;
      this.bar.hidden = !running;
      this.bar.value = answer.progress;
      if (anew) put(this.rows);
      this.rows.append(...answer.doubts.map((doubt) => this.#row(doubt)));
      this.more.hidden = !answer.ready || this.rows.children.length >= answer.total;
      this.start.textContent = answer.ready ? "Look again" : "Look for doubtful labels";
      this.start.disabled = running;
      this.state.textContent = answer.ready ? (answer.total ? plural(answer.total, "doubtful label", "doubtful labels") : "No label is doubtful.") : running ? "Looking …" : "";
    } catch (error) {
      fail(error);
    }
  }

  #row(doubt) {
    const { outside } = this.session.state;
    const name = (label) => h("span", { class: `chip ${colour(label)}` }, label === outside || !label ? "no label" : label);
    const lit = new Set(Array.from({ length: doubt.end - doubt.start }, (_, i) => doubt.start + i));
    const row = h(
      "li",
      { class: "doubt" },
      h("p", { class: "verdict" }, name(doubt.given), " → ", name(doubt.suggested), h("span", { class: "soft score" }, `${percent(doubt.score)} doubtful`)),
      h("p", {}, excerpt(doubt, [], { lit })),
      doubt.text && h("p", { class: "soft small" }, doubt.text),
      h(
        "div",
        { class: "row" },
        h("button", { type: "button", class: "plain", onclick: () => this.#take(doubt, row) }, "Take ", name(doubt.suggested)),
        h("button", { type: "button", class: "plain", onclick: () => this.#settle(row, "kept") }, "Keep"),
        h("a", { class: "button quiet", href: `#label/${doubt.id}/${doubt.start}-${doubt.end}` }, "Why?"),
      ),
    );
    return row;
  }

  /** Replace the doubtful label by the suggested one, and teach it. */
  async #take(doubt, row) {
    const { session } = this;
    const { outside } = session.state;
    const { item } = await get(`/api/items/${doubt.id}`, { tab: session.tab });
    const draft = new Draft(item, session.state);
    if (!doubt.suggested || (doubt.suggested === outside && !draft.nodes)) draft.remove(doubt.start, doubt.end);
    else draft.set(doubt.start, doubt.end, doubt.suggested);
    const body = { ...draft.answer(), version: item.version };
    try {
      await session.correct(item, draft.answer());
      this.#settle(row, "corrected");
    } catch (error) {
      if (error instanceof Conflict) conflictDialog(session, { id: item.id, kind: "accept", body }, error.answer);
      else fail(error);
    }
  }

  #settle(row, what) {
    const next = row.nextElementSibling?.querySelector("button");
    row.classList.add("settled");
    row.querySelectorAll("button").forEach((button) => button.remove());
    row.querySelector(".verdict").append(h("span", { class: "pill done" }, what));
    speak(what);
    next?.focus();
  }
}
