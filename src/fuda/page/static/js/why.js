/** Why a label: the evidence for it and against it, each piece with the sentence it comes from. */

import { Conflict, get, post } from "./api.js";
import { colour } from "./colours.js";
import { differences, isLabel, marksOf } from "./draft.js";
import { asSentence, h, percent, put } from "./dom.js";
import { conflictDialog } from "./dialogs.js";
import { fail } from "./notices.js";
import { excerptAround, textOf } from "./sentence.js";
import { corrector } from "./corrector.js";

export class Why {
  /** @param {import("./session.js").Session} session @param {{onclose: () => void}} callbacks */
  constructor(session, { onclose }) {
    this.session = session;
    this.news = h("div", { class: "why-news", role: "status" });
    this.body = h("div", { class: "why-body" });
    this.element = h(
      "aside",
      { class: "why", "aria-label": "Why this label", hidden: true },
      h("button", { type: "button", class: "quiet close", "aria-label": "Close", onclick: () => (this.close(), onclose()) }, "×"),
      this.news,
      this.body,
    );
  }

  get open() {
    return !this.element.hidden;
  }

  close() {
    this.element.hidden = true;
    this.asked = null;
  }

  /** Explain the label of the words from start to end (exclusive) of the shown sentence. */
  async ask(start, end) {
    put(this.news);
    await this.#explain(start, end);
  }

  async #explain(start, end) {
    const { item, draft } = this.session.current;
    const asked = (this.asked = { id: item.id, start, end });
    this.element.hidden = false;
    // What is still there is about other words: it must not be clicked.
    this.body.inert = true;
    try {
      const answer = await post("/api/why", { id: item.id, start, end, ...draft.answer() });
      if (this.asked === asked) this.#draw(textOf(item, start, end), answer);
    } catch (error) {
      if (this.asked === asked) put(this.body, h("h2", {}, "Why?"), h("p", { class: "soft" }, asSentence(error.message)));
    } finally {
      if (this.asked === asked) this.body.inert = false;
    }
  }

  #draw(text, { chosen, rival, for: pro, against, rest, text: summary }) {
    // The nearest rival may be the same label with other ends.
    const others = rival && (rival === chosen ? " just here" : [" rather than ", this.#name(rival)]);
    put(
      this.body,
      h("h2", {}, "Why ", this.#name(chosen), others, "?"),
      h("p", { class: "asked", dir: "auto" }, text),
      summary && h("p", { class: "soft small" }, summary),
      this.#list("Evidence for it", pro, chosen),
      this.#list("Evidence against it", against, rival),
      rest ? h("p", { class: "soft small" }, `All else together: ${signed(rest)}`) : null,
    );
  }

  #name(label) {
    return h("span", { class: `chip ${colour(label)}` }, isLabel(label, this.session.state.outside) ? label : "none");
  }

  #list(title, pieces, label) {
    if (!pieces?.length) return h("section", {}, h("h3", {}, title), h("p", { class: "soft" }, "Nothing."));
    return h("section", { class: colour(label) }, h("h3", {}, title), h("ol", { class: "evidence-list" }, pieces.map((evidence) => this.#piece(evidence))));
  }

  #piece(evidence) {
    const place = h("div", { class: "opened" });
    const bar = h("span", { class: "share", role: "img", "aria-label": `share ${percent(evidence.share)}` }, h("span", { vars: { "--share": evidence.share } }));
    const source = evidence.words?.length ? evidenceWords(evidence, this.session.state.outside) : h("span", { class: "feature" }, evidence.text);
    const known = evidence.item !== null && evidence.item !== undefined;
    const line = h(
      known ? "button" : "div",
      known ? { type: "button", class: "evidence-line", "aria-expanded": "false", onclick: () => this.#toggle(evidence, line, place) } : { class: "evidence-line" },
      h("span", { class: "evidence-head" }, bar, h("span", { class: "value" }, signed(evidence.value))),
      source,
      evidence.words?.length && evidence.text ? h("span", { class: "soft small" }, evidence.text) : null,
    );
    return h("li", { class: "evidence" }, line, place);
  }

  async #toggle(evidence, line, place) {
    const opening = line.getAttribute("aria-expanded") === "false";
    line.setAttribute("aria-expanded", String(opening));
    if (!opening) {
      put(place);
      return;
    }
    try {
      const { item } = await get(`/api/items/${evidence.item}`, { tab: this.session.tab });
      put(place, corrector(item, this.session.state, evidence, (answer) => this.#correct(item, answer)));
      place.querySelector("[tabindex]").focus();
    } catch (error) {
      fail(error);
    }
  }

  /** Correct a sentence shown as evidence, and show what this changes in the explained one. */
  async #correct(item, answer) {
    const { asked } = this;
    const before = marksOf(this.session.current.item);
    let now;
    try {
      now = await this.session.correct(item, answer);
    } catch (error) {
      if (error instanceof Conflict) conflictDialog(this.session, { id: item.id, kind: "accept", body: answer }, error.answer);
      else fail(error);
      return;
    }
    put(this.news, h("h2", {}, "Corrected"), changes(now, before, marksOf(now)));
    if (asked && this.open) await this.#explain(asked.start, asked.end);
  }
}

/** What a correction changed here, in words. */
function changes(item, before, after) {
  const found = differences(before, after);
  const chip = (mark) => h("span", { class: `chip ${colour(mark?.label)}` }, mark?.label ?? "no label");
  if (found.length) {
    return h(
      "ul",
      { class: "changes" },
      found.map((d) => h("li", {}, h("b", { dir: "auto" }, textOf(item, d.start, d.end)), " ", chip(d.before), " → ", chip(d.after))),
    );
  }
  const shifts = after
    .map((mark, i) => ({ mark, by: mark.probability - (before[i]?.probability ?? mark.probability) }))
    .sort((a, b) => Math.abs(b.by) - Math.abs(a.by));
  const most = shifts[0];
  if (!most || Math.abs(most.by) < 0.005) return h("p", {}, "It changes nothing in this sentence.");
  return h("p", {}, "No label changes in this sentence; ", chip(most.mark), ` goes from ${percent(most.mark.probability - most.by)} to ${percent(most.mark.probability)}.`);
}

/** The part of a training sentence around the place that is evidence. */
function evidenceWords(evidence, outside) {
  const { node, label, matched = [] } = evidence;
  const marks = isLabel(label, outside) ? [{ start: node, end: node + 1, label, probability: 1, by: "person" }] : [];
  return excerptAround(evidence, marks, [Math.min(node, ...matched), Math.max(node, ...matched) + 1], { lit: matched, at: node });
}

const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toPrecision(2)}`;
