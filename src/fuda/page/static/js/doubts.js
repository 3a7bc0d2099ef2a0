/** Labels that the rest of the data contradict, most doubtful first. */

import { Conflict, get, post } from "./api.js";
import { colour } from "./colours.js";
import { conflictDialog } from "./dialogs.js";
import { Draft, isLabel, marksOf } from "./draft.js";
import { announce, h, percent, plural, put } from "./dom.js";
import { fail } from "./notices.js";
import { excerptAround } from "./sentence.js";

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
    session.addEventListener("doubts", ({ detail }) => this.#progress(detail));
  }

  entered() {
    this.#load(true);
  }

  async #start() {
    try {
      this.running = true;
      const { search } = await post("/api/doubts", {});
      // Else a message came first, and rows may be in use.
      if (search !== this.shown) await this.#load(true);
    } catch (error) {
      this.running = false;
      fail(error);
    }
  }

  #progress({ progress: done, search }) {
    // A late message: its list is there, and rows of it may be in use.
    if (search === this.shown) return;
    this.running = done < 1;
    this.#draw(false, done);
    if (done >= 1 && this.element.isConnected) this.#load(true);
  }

  #draw(ready, done, likely = 0) {
    const running = !ready && (this.running || (done > 0 && done < 1));
    this.bar.hidden = !running;
    this.bar.value = done;
    this.start.disabled = running;
    this.start.textContent = ready ? "Look again" : "Look for doubtful labels";
    const found = likely ? `${plural(likely, "label is", "labels are")} contradicted by the rest of the data; the most doubtful come first.` : "No label is contradicted by the rest of the data; the least certain come first.";
    this.state.textContent = ready ? found : running ? "Each part of the data is compared with a model of the rest …" : "";
  }

  async #load(anew) {
    const offset = anew ? 0 : this.rows.children.length;
    const number = (this.loads = (this.loads ?? 0) + 1);
    try {
      const answer = await get("/api/doubts", { offset, limit: PAGE });
      if (number !== this.loads) return; // a later answer is on its way
      if (answer.ready) [this.running, this.shown] = [false, answer.search];
      if (anew) put(this.rows);
      this.rows.append(...answer.doubts.map((doubt) => this.#row(doubt)));
      this.more.hidden = !answer.ready || this.rows.children.length >= answer.total;
      this.#draw(answer.ready, answer.progress, answer.likely);
    } catch (error) {
      fail(error);
    }
  }

  #row(doubt) {
    const { outside, unit } = this.session.state;
    const name = (label) => h("span", { class: `chip ${colour(label)}` }, isLabel(label, outside) ? label : "none");
    const names = (text) => String(text).split(", ").map(name);
    const share = 1 / (1 + Math.exp(-doubt.score)); // of log-odds
    const stretch = [doubt.start, doubt.end];
    const lit = Array.from({ length: doubt.end - doubt.start }, (_, i) => doubt.start + i);
    const version = (title, labels) => {
      const marks = marksOf({ ...labels, source: "person" }).filter((m) => isLabel(m.label, outside));
      return [h("dt", {}, title), h("dd", {}, excerptAround(doubt, marks, stretch, { around: 10, lit, nodes: unit === "nodes" }))];
    };
    const row = h(
      "li",
      { class: "doubt" },
      h("p", { class: "verdict" }, names(doubt.given), " → ", names(doubt.suggested), h("span", { class: "soft small score" }, `${percent(share)} against it`)),
      h("dl", { class: "now-instead" }, version("now", doubt.now), version("rather", doubt.instead)),
      doubt.text && h("p", { class: "soft small" }, doubt.text),
      h(
        "div",
        { class: "row" },
        h("button", { type: "button", class: "plain", onclick: () => this.#take(doubt, row).catch(fail) }, "Change it"),
        h("button", { type: "button", class: "plain", onclick: () => this.#decided(row, "kept") }, "Keep it"),
        h("a", { class: "button quiet", href: `#label/${doubt.id}/${doubt.start}-${doubt.end}` }, "Why?"),
      ),
    );
    return row;
  }

  /** Put what is suggested in the place of the doubtful labels, and teach it. */
  async #take(doubt, row) {
    const { session } = this;
    const { item } = await get(`/api/items/${doubt.id}`, { tab: session.tab });
    const answer = new Draft({ ...item, ...doubt.instead }, session.state).answer();
    try {
      await session.correct(item, answer);
      this.#decided(row, "changed");
    } catch (error) {
      if (!(error instanceof Conflict)) throw error;
      conflictDialog(session, { id: item.id, kind: "accept", body: answer }, error.answer);
    }
  }

  #decided(row, what) {
    const next = row.nextElementSibling?.querySelector("button");
    row.classList.add("decided");
    row.querySelectorAll("button").forEach((button) => button.remove());
    row.querySelector(".verdict").append(h("span", { class: "pill done" }, what));
    announce(what);
    next?.focus();
  }
}
