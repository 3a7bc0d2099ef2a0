/**
 * The course of the labelling in this tab: what is shown, what comes next, what was answered.
 *
 * The next sentence is here before it is needed, so that Enter shows it at once; the answer goes
 * to the server meanwhile, and what the model has learned from it is drawn in when it is there.
 */

import { get, post, Refused, Unreachable } from "./api.js";
import { colourLabels } from "./colours.js";
import { Draft } from "./draft.js";
import { Drafts } from "./drafts.js";
import { Outbox } from "./outbox.js";

/**
 * Milliseconds after which to look whether the model has learned an answer: the first lesson takes
 * seconds, and more on a busy computer.
 */
function* lesson() {
  yield* [0, 300, 700, 1500, 2500, 5000];
  for (;;) yield 10_000;
}

export class Session extends EventTarget {
  /** @param {Object} state as /api/state has it */
  constructor(state) {
    super();
    // A reload goes on as the same tab: its leases and its undo are its own.
    this.tab = sessionStorage.getItem("fuda.tab") ?? state.tab;
    sessionStorage.setItem("fuda.tab", this.tab);
    this.setState(state);
    this.store = state.store ?? state.title;
    /** @type {{item: Object, draft: Draft}|null} */
    this.current = null;
    /** @type {Object[]} */
    this.upcoming = [];
    /** @type {number[]} */
    this.visited = [];
    this.drafts = new Drafts(this.store);
    /** Items whose answers may be unsent. @type {Map<number, Object>} */
    this.answered = new Map();
    /** Whether words are being chosen; the view knows. */
    this.busy = () => false;
    this.outbox = new Outbox(this.store, this.tab);
    this.outbox.addEventListener("sent", ({ detail }) => this.#sent(detail.entry, detail.answer));
    this.outbox.addEventListener("conflict", ({ detail }) => this.#tell("conflict", detail));
    this.outbox.addEventListener("refused", ({ detail }) => this.#refused(detail.entry, detail.error));
    this.outbox.addEventListener("waiting", ({ detail }) => this.#tell("connection", { lost: true, error: detail.error }));
  }

  setState(state) {
    this.state = state;
    colourLabels(state.labels);
    this.#tell("state", state);
  }

  async refreshState() {
    this.setState(await get("/api/state"));
  }

  /** Send what an earlier visit left unsent; show the first sentence unless `first` is false. */
  async start(first) {
    this.outbox.drain();
    if (first) await this.#fetchNext(null);
  }

  /** Show the sentence that is the most useful now. */
  async advance() {
    const next = this.upcoming.shift();
    if (next) this.show(next);
    else await this.#fetchNext(this.current?.item.id ?? null);
  }

  /** Show an item as it is; a draft of it that was left open is taken up again. */
  show(item, { remember = true } = {}) {
    const draft = this.drafts.of(item, this.state);
    // A draft keeps its older version: the server then shows both versions instead of losing one.
    this.current = { item: { ...item, version: draft.version }, draft };
    if (remember && this.visited.at(-1) !== item.id) this.visited.push(item.id);
    this.#tell("show", this.current);
    // The answer to the one just accepted brings the next but one.
    if (!this.upcoming.length && !this.outbox.size) this.#prefetch();
  }

  /** Open an item by its number. */
  async open(id, options) {
    if (this.outbox.failures) throw new Unreachable("The server does not answer now.");
    await this.outbox.idle();
    const { item } = await get(`/api/items/${id}`, { tab: this.tab });
    this.show(item, options);
  }

  /** Go to the sentence seen before this one (-1) or after it (1) in this tab. */
  async step(by) {
    const here = this.visited.lastIndexOf(this.current?.item.id);
    const id = this.visited[(here < 0 ? this.visited.length : here) + by];
    if (id === undefined) return false;
    await this.open(id, { remember: false });
    return true;
  }

  /** The draft was changed: keep it, also against a closed tab. */
  changed() {
    const { item, draft } = this.current;
    this.drafts.keep(item, draft);
    this.#tell("draft", this.current);
  }

  accept() {
    this.#answer("accept", this.current?.draft.answer());
  }

  skip() {
    this.#answer("skip", {});
  }

  /** Take back the last change: of this sentence, else the last answer. */
  async undo() {
    if (this.current?.draft.undo()) return this.changed();
    const unsent = this.outbox.takeBack();
    if (unsent) {
      if (this.current) this.upcoming.unshift(this.current.item);
      const item = this.answered.get(unsent.id);
      return item ? this.show(item) : this.open(unsent.id);
    }
    await this.outbox.idle();
    const answer = await post("/api/undo", { tab: this.tab });
    if (!answer.item) return this.#tell("undone", answer);
    if (this.current && this.current.item.id !== answer.item.id) this.upcoming.unshift(this.current.item);
    this.#count(answer);
    this.drafts.forget(answer.item.id);
    this.show(answer.item);
    this.#tell("undone", answer);
    this.#tell("state", this.state);
  }

  /** Send an answer again after a conflict, now to the newer version. */
  insist(entry, version) {
    this.outbox.add(entry.id, entry.kind, { ...entry.body, version });
  }

  /** Another edit of an item holds: the draft here is given up. */
  giveWay(id) {
    this.drafts.forget(id);
    this.answered.delete(id);
    this.#discarded();
    if (!this.current) this.advance();
  }

  /** An answer will not be stored, though it was counted when it was given. */
  #discarded() {
    this.#tell("learned");
    this.refreshState().catch(() => {}); // the next answer brings the numbers too
  }

  /** The order was changed: what was fetched ahead is no longer next. */
  reorder() {
    this.upcoming = [];
    if (this.current?.draft.touched) this.#prefetch();
    else this.advance().catch(() => {}); // the next answer brings one, else
  }

  /** Correct another sentence at once, and read this one anew with what the model has learned. */
  async correct(item, answer) {
    await post(`/api/items/${item.id}/accept`, { ...answer, version: item.version, tab: this.tab, after: this.current?.item.id });
    return this.reread({ always: true });
  }

  /**
   * Read the shown item anew. A touched draft stays, and so does a sentence in which words are
   * being chosen: they must not move under the pointer. The fresh item is returned either way.
   */
  async reread({ always = false } = {}) {
    const shown = this.current;
    if (!shown) return null;
    const { item } = await get(`/api/items/${shown.item.id}`, { tab: this.tab });
    if (this.current !== shown) return item;
    if (!shown.draft.touched && (always || !this.busy())) {
      this.current = { item, draft: new Draft(item, this.state) };
      this.#tell("reread", { before: shown.item, ...this.current });
    }
    return item;
  }

  /** Other tabs changed these items: they are not to come as they were. */
  changedElsewhere(ids) {
    const stale = new Set(ids);
    this.upcoming = this.upcoming.filter((item) => !stale.has(item.id));
    if (!this.upcoming.length) this.#prefetch();
  }

  #answer(kind, body) {
    if (!this.current) return;
    const { item } = this.current;
    this.answered.set(item.id, item);
    const next = this.upcoming.shift() ?? null;
    this.state = { ...this.state, done: this.state.done + (kind === "accept" && item.status !== "done" ? 1 : 0) };
    this.current = null;
    this.#tell("learning");
    this.outbox.add(item.id, kind, { ...body, version: item.version, after: next?.id ?? null });
    if (next) this.show(next);
    else this.#tell("waiting");
    this.#tell("state", this.state);
  }

  #sent(entry, answer) {
    this.drafts.forget(entry.id);
    this.answered.delete(entry.id);
    this.#count(answer);
    this.#tell("connection", { lost: false });
    this.#tell("sent", { entry, answer });
    this.#tell("state", this.state);
    const next = answer.next;
    if (!this.current && !this.outbox.size) {
      if (!next) {
        this.#fetchNext(entry.id);
        this.#tell("learned");
        return;
      }
      this.show(next);
    } else this.#comes(next);
    if (!this.outbox.size) this.#learned(entry.kind === "accept" && !this.state.preparing ? lesson() : [0], answer.event);
  }

  /** The model is ready: draw in what it has learned of answers that came before. */
  async prepared() {
    await this.refreshState();
    if (this.state.done) await this.#learned(lesson(), this.state.event);
  }

  /**
   * Draw in what the model has learned, as soon as it has, while the same sentence is shown.
   * @param {Iterable<number>} waits
   * @param {number} event the last lesson
   */
  async #learned(waits, event) {
    const { current } = this;
    for (const wait of waits) {
      await new Promise((done) => setTimeout(done, wait));
      if (this.current?.item.id !== current?.item.id || current?.item.status !== "new") break;
      const item = await this.reread().catch(() => null);
      this.#tell("learned");
      const isDrawn = this.current?.item === item || this.current?.draft.touched;
      if (!item || (item.learned >= event && isDrawn)) break;
    }
    this.#tell("learned");
  }

  /** Keep an item for later, unless it is here already. */
  #comes(item) {
    if (item && item.id !== this.current?.item.id && !this.upcoming.some((other) => other.id === item.id)) this.upcoming.push(item);
  }

  #refused(entry, error) {
    this.#tell("refused", { entry, error });
    this.#discarded();
    if (!this.current) this.#fetchNext(null);
  }

  #count({ done, skipped, undo }) {
    this.state = { ...this.state, done, skipped: skipped ?? this.state.skipped, undo };
  }

  async #fetchNext(after) {
    const { item } = await post("/api/next", { tab: this.tab, after });
    if (this.current && this.current.item.id !== after) return;
    if (item) this.show(item);
    else {
      this.current = null;
      this.#tell("finished");
    }
  }

  async #prefetch() {
    if (this.prefetching) return;
    this.prefetching = true;
    try {
      const { item } = await post("/api/next", { tab: this.tab, after: this.current?.item.id ?? null });
      this.#comes(item);
    } catch (error) {
      // Of these, the next answer brings one.
      if (!(error instanceof Refused || error instanceof Unreachable)) throw error;
    } finally {
      this.prefetching = false;
    }
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
