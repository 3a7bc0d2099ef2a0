/** Drafts that were begun and not answered: kept here, and in the browser against a closed tab. */

import { Draft } from "./draft.js";

export class Drafts {
  /** @param {string} store whose items they are of */
  constructor(store) {
    this.prefix = `fuda.draft.${store}.`;
    /** @type {Map<number, Draft>} */
    this.begun = new Map();
  }

  /** The draft of an item, as it was left or a new one. */
  of(item, state) {
    const kept = JSON.parse(localStorage.getItem(this.prefix + item.id) ?? "null");
    return this.begun.get(item.id) ?? new Draft(kept ? { ...item, version: kept.version } : item, state, kept?.marks);
  }

  /** Keep a draft that was changed; one that is again as proposed is forgotten. */
  keep(item, draft) {
    if (!draft.touched) return this.forget(item.id);
    this.begun.set(item.id, draft);
    localStorage.setItem(this.prefix + item.id, JSON.stringify({ version: item.version, marks: draft.marks }));
  }

  /** Give up the draft of an item. */
  forget(id) {
    this.begun.delete(id);
    localStorage.removeItem(this.prefix + id);
  }
}
