/**
 * Answers on their way to the server, one after the other.
 *
 * An answer is in the browser's storage until the server has acknowledged it, so that neither a
 * lost connection nor a closed tab loses what a person did.
 */

import { Conflict, post, Refused, Unreachable } from "./api.js";

const RETRY = [500, 1000, 2000, 4000];
/** A tab that is alive writes at least this often while it has something to send. */
const ABANDONED = 20_000;

export class Outbox extends EventTarget {
  /** @param {string} store @param {string} tab */
  constructor(store, tab) {
    super();
    this.prefix = `fuda.outbox.${store}.`;
    this.key = this.prefix + tab;
    this.tab = tab;
    /** @type {{id: number, kind: string, body: Object}[]} */
    this.entries = [...read(this.key).entries, ...this.#abandoned()];
    this.sending = false;
    this.failures = 0;
    this.#keep();
  }

  get size() {
    return this.entries.length;
  }

  /**
   * Queue the answer to an item.
   * @param {number} id
   * @param {"accept"|"skip"} kind
   * @param {Object} body
   */
  add(id, kind, body) {
    this.entries.push({ id, kind, body });
    this.#keep();
    this.drain();
  }

  /** Take back the last answer that is not on its way. */
  takeBack() {
    if (this.entries.length < (this.sending ? 2 : 1)) return null;
    const entry = this.entries.pop();
    this.#keep();
    return entry;
  }

  /** Wait until everything is sent. */
  async idle() {
    while (this.entries.length) await new Promise((done) => this.addEventListener("change", done, { once: true }));
  }

  /** Send what is queued, in order; again while the server is unreachable or cannot store it. */
  async drain() {
    clearTimeout(this.timer);
    if (this.sending) return;
    this.sending = true;
    while (this.entries.length) {
      const entry = this.entries[0];
      let answer = null;
      let error = null;
      try {
        answer = await post(`/api/items/${entry.id}/${entry.kind}`, { ...entry.body, tab: this.tab });
      } catch (thrown) {
        error = thrown;
      }
      if (error instanceof Unreachable || error?.locked || error?.stuck) {
        this.#keep();
        this.timer = setTimeout(() => this.drain(), RETRY[Math.min(this.failures++, RETRY.length - 1)]);
        this.#tell("waiting", { error });
        break;
      }
      this.failures = 0;
      this.entries.shift();
      this.#keep();
      if (answer) this.#tell("sent", { entry, answer });
      else if (error instanceof Conflict) this.#tell("conflict", { entry, answer: error.answer });
      else if (error instanceof Refused) this.#tell("refused", { entry, error });
      else throw error;
      this.#tell("change");
    }
    this.sending = false;
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  #keep() {
    if (this.entries.length) localStorage.setItem(this.key, JSON.stringify({ time: Date.now(), entries: this.entries }));
    else localStorage.removeItem(this.key);
  }

  /** What tabs that are gone could not send. */
  #abandoned() {
    const others = Object.keys(localStorage).filter((key) => key.startsWith(this.prefix) && key !== this.key);
    const gone = others.filter((key) => Date.now() - read(key).time > ABANDONED);
    const entries = gone.flatMap((key) => read(key).entries);
    gone.forEach((key) => localStorage.removeItem(key));
    return entries;
  }
}

function read(key) {
  try {
    return { time: 0, entries: [], ...JSON.parse(localStorage.getItem(key)) };
  } catch {
    return { time: 0, entries: [] }; // damaged: nothing that could be sent
  }
}
