/** The view in which sentences are labelled. */

import { announce, h, put } from "./dom.js";
import { Editor } from "./editor.js";
import { editorKey, isTaken } from "./keys.js";
import { fail, notice } from "./notices.js";
import { Palette } from "./palette.js";
import { recentList } from "./recent.js";
import { Why } from "./why.js";

const SOURCES = { model: "labels proposed by the model", person: "labels by hand", file: "labels from the file" };
const WAITING = "answers are kept, and learned when the model is ready";

export class LabelView {
  /** @param {import("./session.js").Session} session */
  constructor(session) {
    this.session = session;
    this.meta = h("p", { class: "meta" });
    this.host = h("div", { class: "sentence", id: "sentence", tabindex: 0, role: "group", dir: "auto", "aria-describedby": "hint" });
    this.editor = new Editor(this.host, {
      onchange: () => session.changed(),
      onselect: () => this.#marked(),
      onwhy: (start, end) => this.#why(start, end),
    });
    this.palette = new Palette(session, (label) => this.#choose(label));
    this.why = new Why(session, { onclose: () => this.#focus() });
    this.actions = this.#actions();
    this.hint = h("p", { id: "hint", class: "hint" });
    this.card = h("section", { class: "card", "aria-label": "Sentence" }, this.meta, this.host, this.hint);
    this.dock = h("div", { class: "dock" }, this.palette.element, this.actions);
    this.empty = h("section", { class: "card done", hidden: true });
    this.element = h("div", { class: "label-view" }, h("div", { class: "column" }, this.card, this.empty, this.dock, recentList(session)), this.why.element);
    this.#listen();
    session.busy = () => this.editor.selection !== null;
  }

  entered() {
    this.#focus();
  }

  /** Show why a stretch of the shown sentence has its label. */
  ask(start, end) {
    this.editor.select(start, end - 1);
    this.#why(start, end);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (isTaken(event)) return;
    const { session, editor } = this;
    const run = (action) => {
      event.preventDefault();
      Promise.resolve(action()).catch(fail);
    };
    if (session.current && event.key === "Enter") !event.repeat && run(() => this.#accept());
    else if (session.current && editorKey(event, editor, (key) => this.palette.labelOf(key))) this.#focus();
    else if (event.key === "Escape") run(() => this.#escape());
    else {
      const letters = {
        s: () => session.skip(),
        z: () => session.undo(),
        w: () => editor.askWhy(),
        l: () => this.palette.focusField(),
        p: () => this.#step(-1),
        n: () => this.#step(1),
      };
      const action = letters[event.key.toLowerCase()];
      if (action && !event.repeat) run(action);
    }
  }

  #listen() {
    const { session } = this;
    const draw = () => this.#show();
    session.addEventListener("show", () => {
      this.why.close();
      draw();
      announce(`Sentence: ${session.current.item.words.join(" ")}`);
    });
    session.addEventListener("reread", () => {
      const { selection } = this.editor;
      draw();
      if (selection) this.editor.select(selection.from, selection.to);
    });
    session.addEventListener("undone", ({ detail }) => !detail.item && notice("There is nothing to undo."));
    session.addEventListener("learning", () => this.host.setAttribute("aria-busy", "true"));
    session.addEventListener("learned", () => this.host.removeAttribute("aria-busy"));
    session.addEventListener("draft", () => this.#redraw());
    session.addEventListener("waiting", () => this.#vacant("One moment …", "The next sentence is on its way."));
    session.addEventListener("finished", () => this.#finished());
    session.addEventListener("state", () => {
      this.#buttons();
      if (!session.current) return;
      this.#describe();
      put(this.hint, this.#hint(session.current.draft.nodes));
    });
  }

  #show() {
    const { item, draft } = this.session.current;
    this.#vacate(false);
    this.editor.show(item, draft, Boolean(item.heads));
    this.#describe();
    this.#marked();
    put(this.hint, this.#hint(draft.nodes));
    if (!this.element.contains(document.activeElement)) this.#focus();
    this.#buttons();
  }

  #redraw() {
    this.editor.redraw();
    this.#describe();
    this.#buttons();
    this.#marked();
  }

  #describe() {
    const { item, draft } = this.session.current;
    const { done, learner, preparing } = this.session.state;
    const untaught = item.source === "model" && !done && learner !== "given";
    const origin = untaught ? "" : item.source === "model" && preparing ? WAITING : SOURCES[item.source];
    put(
      this.meta,
      h("span", { dir: "auto" }, item.place ?? `Sentence ${item.id}`),
      item.status !== "new" && h("span", { class: `pill ${item.status}` }, item.status),
      h("span", { class: "soft" }, draft.touched ? "changed by you" : origin),
    );
  }

  #vacate(empty) {
    this.card.hidden = empty;
    this.empty.hidden = !empty;
    this.palette.element.hidden = empty;
    this.why.element.hidden ||= empty;
    this.element.classList.toggle("with-why", this.why.open);
  }

  #vacant(title, ...text) {
    this.#vacate(true);
    put(this.empty, h("h2", {}, title), ...text.map((t) => h("p", { class: "soft" }, t)));
    this.#buttons();
  }

  #finished() {
    const { state } = this.session;
    this.#vacant("No sentence is left", `${state.done} of ${state.total} are labelled${state.skipped ? `, ${state.skipped} were skipped` : ""}.`);
    this.empty.append(
      h("p", {}, "Look through ", h("a", { href: "#doubts" }, "labels that the rest of the data contradict"), ", or go back to ", h("a", { href: "#sentences" }, "any sentence"), "."),
    );
  }

  #actions() {
    const button = (name, key, run, kind) =>
      h("button", { type: "button", class: kind, "data-action": name.toLowerCase(), onclick: () => (Promise.resolve(run()).catch(fail), this.#focus()) }, name, h("kbd", { "aria-hidden": "true" }, key));
    return h(
      "div",
      { class: "actions" },
      button("Accept", "↵", () => this.#accept(), "primary"),
      button("Skip", "S", () => this.session.skip(), "plain"),
      button("Undo", "Z", () => this.session.undo(), "plain"),
      button("Remove", "⌫", () => this.editor.remove(), "plain touch"),
    );
  }

  #buttons() {
    const shown = Boolean(this.session.current);
    for (const name of ["accept", "skip"]) this.actions.querySelector(`[data-action=${name}]`).disabled = !shown;
    this.actions.querySelector("[data-action=undo]").disabled = this.session.state.undo === 0 && !this.session.current?.draft.touched && !this.session.outbox.size;
    this.actions.querySelector("[data-action=remove]").disabled = !shown || !this.editor.range;
  }

  #marked() {
    const { range } = this.editor;
    const mark = range && this.session.current?.draft.drawn.find((m) => m.start === range[0] && m.end === range[1]);
    this.palette.mark(mark?.label ?? null, Boolean(range));
    this.#buttons();
  }

  #choose(label) {
    if (this.session.current && !this.editor.label(label)) notice("First choose words: drag over them, or use the arrow keys.");
    this.#focus();
  }

  #why(start, end) {
    this.why.ask(start, end);
    this.#focus();
    if (matchMedia("(max-width: 60rem)").matches) this.why.element.scrollIntoView({ block: "nearest" });
  }

  #accept() {
    const missing = this.session.current?.draft.missing ?? -1;
    if (missing < 0) return this.session.accept();
    this.editor.select(missing);
    return notice("Every word needs a label; this one has none yet.");
  }

  #escape() {
    if (this.why.open) this.why.close();
    else this.editor.select(null);
    this.element.classList.toggle("with-why", this.why.open);
    this.#focus();
  }

  async #step(by) {
    if (!(await this.session.step(by))) notice(by < 0 ? "This is the first sentence seen here." : "Enter accepts this sentence, S skips it.");
  }

  #focus() {
    this.element.classList.toggle("with-why", this.why.open);
    if (!this.card.hidden) this.host.focus({ preventScroll: true });
  }

  #hint(nodes) {
    const key = (text) => h("kbd", {}, text);
    if (!this.session.state.labels.length) return "Drag over words, then write the name of their label below and press Enter.";
    const first = nodes ? "a word, or drag over several" : "over words";
    if (matchMedia("(pointer: coarse)").matches) return `Tap a word, or the first and the last of several, then a label below. Tap a label in the text to see why.`;
    return [`${nodes ? "Click" : "Drag"} ${first}, then `, key("1"), " … ", key("9"), " for the label. ", key("Enter"), " accepts. ", key("?"), " shows all keys."];
  }
}
