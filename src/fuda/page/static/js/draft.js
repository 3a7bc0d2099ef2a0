/**
 * What a person makes of a sentence before it is accepted.
 *
 * Spans and labels of nodes are both kept as marks, stretches of words with a label, so that the
 * rest of the page has one way to draw and change them.
 *
 * @typedef {{start: number, end: number, label: string, probability: number, by: string}} Mark
 */

/** The marks of an item as the server sent it. @returns {Mark[]} */
export function marksOf(item) {
  const by = item.source ?? "person";
  if (item.labels) return item.labels.map((l, i) => ({ probability: 1, ...asLabel(l), start: i, end: i + 1, by }));
  return (item.spans ?? []).map((span) => ({ probability: 1, ...span, by })).sort((a, b) => a.start - b.start);
}

/** Whether a label is one to draw. */
export const isLabel = (label, outside) => label !== null && label !== undefined && label !== outside;

const asLabel = (label) => (typeof label === "string" ? { label } : label);

export class Draft {
  /**
   * @param {Object} item
   * @param {{unit: string, outside: string|null}} state
   * @param {Mark[]} [marks] as they were left, where the item was open before
   */
  constructor(item, state, marks) {
    this.version = item.version;
    this.nodes = state.unit === "nodes";
    this.outside = state.outside;
    this.proposed = marksOf(item);
    this.marks = marks ?? this.proposed;
    /** @type {Mark[][]} */
    this.past = marks ? [this.proposed] : [];
  }

  get touched() {
    return this.past.length > 0;
  }

  /** Label the words from start to end (exclusive). Spans that overlap them are replaced. */
  set(start, end, label) {
    const mark = { label, probability: 1, by: "person" };
    if (this.nodes) {
      this.#change(this.marks.map((m) => (m.start >= start && m.start < end ? { ...m, ...mark } : m)));
      return;
    }
    const apart = this.marks.filter((m) => m.end <= start || m.start >= end);
    this.#change([...apart, { start, end, ...mark }].sort((a, b) => a.start - b.start));
  }

  /** Remove labels: spans vanish, nodes get the outside label or, without one, the proposal. */
  remove(start, end) {
    if (!this.nodes) {
      const apart = this.marks.filter((m) => m.end <= start || m.start >= end);
      if (apart.length < this.marks.length) this.#change(apart);
    } else if (this.outside !== null) {
      this.set(start, end, this.outside);
    } else {
      this.#change(this.marks.map((m, i) => (i >= start && i < end ? this.proposed[i] : m)));
    }
  }

  /** Take back the last change. @returns {boolean} whether there was one */
  undo() {
    const before = this.past.pop();
    if (before) this.marks = before;
    return Boolean(before);
  }

  /** The mark over a word. @returns {Mark|undefined} */
  at(word) {
    return this.marks.find((m) => m.start <= word && word < m.end);
  }

  /** The first word that has no label although it needs one, or -1. */
  get missing() {
    return this.marks.findIndex((m) => m.label === null);
  }

  /** The marks that are drawn: not those of nodes that are outside or not labelled yet. */
  get drawn() {
    return this.marks.filter((m) => isLabel(m.label, this.outside));
  }

  /** The labels, as the server expects them. */
  answer() {
    if (this.nodes) return { labels: this.marks.map((m) => m.label) };
    return { spans: this.marks.map(({ start, end, label }) => ({ start, end, label })) };
  }

  #change(marks) {
    this.past.push(this.marks);
    this.marks = marks;
  }
}

/**
 * What differs between two lots of marks, as stretches of words.
 * @param {Mark[]} before @param {Mark[]} after
 * @returns {{start: number, end: number, before: Mark|null, after: Mark|null}[]}
 */
export function differences(before, after) {
  const key = (m) => `${m.start} ${m.end}`;
  const was = new Map(before.map((m) => [key(m), m]));
  const is = new Map(after.map((m) => [key(m), m]));
  const found = [];
  for (const m of after) {
    const old = was.get(key(m)) ?? null;
    if (old?.label !== m.label) found.push({ start: m.start, end: m.end, before: old, after: m });
  }
  for (const m of before) if (!is.has(key(m))) found.push({ start: m.start, end: m.end, before: m, after: null });
  return found.sort((a, b) => a.start - b.start);
}
