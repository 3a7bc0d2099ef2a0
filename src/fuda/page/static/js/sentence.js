/** Sentences as running text, with their marks. */

import { colour } from "./colours.js";
import { h, percent } from "./dom.js";

/** Surer than this, a label goes without its number: only doubts ask for attention. */
const SURE = 0.95;
/** Less sure than this, it is drawn with a broken line. */
const UNSURE = 0.6;

/** Words longer than this may be broken, so that they fit narrow pages. */
const LONG = 16;

/**
 * The words of a sentence with marks drawn in.
 * @param {{words: string[], spaces?: boolean[]}} item
 * @param {import("./draft.js").Mark[]} marks
 * @param {Object} [options] `nodes`: whether marks are of nodes; `chip`: makes a label of a mark;
 *   `lit`: the set of words to highlight; `at`: the word all is about
 * @returns {Node[]}
 */
export function wordsWithMarks(item, marks, { nodes = false, chip = label, lit, at } = {}) {
  const starts = new Map(marks.map((m) => [m.start, m]));
  const word = (i) => h("span", { class: wordClass(i, lit, at), "data-i": i }, item.words[i]);
  const spaced = spacing(item);
  const gap = (i) => spaced(i) && h("span", { class: lit?.has(i) && lit.has(i + 1) ? "gap lit" : "gap", "data-i": i }, " ");
  const out = [];
  for (let i = 0; i < item.words.length; ) {
    const mark = starts.get(i);
    const end = mark ? mark.end : i + 1;
    const inside = [];
    for (let j = i; j < end - 1; j++) inside.push(word(j), gap(j));
    const last = word(end - 1);
    inside.push(last);
    if (nodes) out.push(h("span", { class: "node" }, inside, mark ? chip(mark) : h("span", { class: "chip none" }, "\u00a0")));
    else if (!mark) out.push(...inside);
    else if (item.words[end - 1].length > LONG) out.push(h("span", markProps(mark), inside, chip(mark)));
    else out.push(h("span", markProps(mark), inside.slice(0, -1), h("span", { class: "tail" }, last, chip(mark))));
    if (end < item.words.length) out.push(gap(end - 1));
    i = end;
  }
  return out.flat().filter(Boolean);
}

/**
 * Whether white space follows a word. Files of words alone do not tell; there, punctuation stands
 * as in print.
 */
function spacing({ words, spaces }) {
  if (spaces && !spaces.every(Boolean)) return (i) => spaces[i];
  return (i) => !/^[([{¿¡«“]$/u.test(words[i]) && !/^([,.;:!?%)\]}»”…]|\.\.\.|['’]s|n't)$/u.test(words[i + 1] ?? "");
}

/** The words from start to end (exclusive) as one text. */
export function textOf(item, start = 0, end = item.words.length) {
  const follows = spacing(item);
  return item.words
    .slice(start, end)
    .map((word, i) => (start + i + 1 < end && follows(start + i) ? `${word} ` : word))
    .join("");
}

function wordClass(i, lit, at) {
  return `word${lit?.has(i) ? " lit" : ""}${at === i ? " here" : ""}`;
}

function markProps(mark) {
  const doubtful = mark.probability < UNSURE ? " unsure" : "";
  return { class: `mark ${colour(mark.label)}${doubtful}`, "data-label": mark.label, vars: { "--p": mark.probability } };
}

/** A label that nothing can be done with. */
export function label(mark) {
  return h("span", chipProps(mark), mark.label, sureness(mark));
}

/**
 * A label to click.
 * @param {import("./draft.js").Mark} mark
 * @param {string[]} words
 * @param {() => void} onclick
 */
export function labelButton(mark, words, onclick) {
  const text = words.slice(mark.start, mark.end).join(" ");
  const sure = mark.by === "model" ? `, ${percent(mark.probability)} sure` : "";
  return h(
    "button",
    { ...chipProps(mark), type: "button", onclick, "aria-label": `${mark.label}: ${text}${sure}. Why?`, title: `Why ${mark.label}${sure}` },
    mark.label,
    sureness(mark),
  );
}

function chipProps(mark) {
  return { class: `chip ${colour(mark.label)}${mark.probability < UNSURE ? " unsure" : ""}`, vars: { "--p": mark.probability } };
}

function sureness(mark) {
  return mark.by === "model" && mark.probability < SURE && h("i", { class: "sure" }, percent(mark.probability));
}

/**
 * A sentence's part around a stretch of words, with the marks that lie within it.
 * @param {{words: string[], spaces?: boolean[]}} item
 * @param {import("./draft.js").Mark[]} marks
 * @param {[number, number]} stretch end exclusive
 * @param {{around?: number, lit?: Iterable<number>, at?: number, nodes?: boolean}} options
 *   around: words on either side; lit and at as in wordsWithMarks, in words of the sentence
 */
export function excerptAround(item, marks, [start, end], { around = 7, lit = [], at, nodes } = {}) {
  let [from, to] = [Math.max(0, start - around), Math.min(item.words.length, end + around)];
  for (const mark of marks) {
    if (mark.start < from && mark.end > from) from = mark.start; // no mark is cut in two
    if (mark.start < to && mark.end > to) to = mark.end;
  }
  const part = { words: item.words.slice(from, to), spaces: item.spaces?.slice(from, to) };
  const inside = marks.filter((m) => m.start >= from && m.end <= to).map((m) => ({ ...m, start: m.start - from, end: m.end - from }));
  const text = excerpt(part, inside, { lit: new Set([...lit].map((i) => i - from)), at: at === undefined ? undefined : at - from, nodes });
  if (from > 0) text.prepend("… ");
  if (to < item.words.length) text.append(" …");
  return text;
}

/** A sentence in a line or two of text, for lists and panels. */
export function excerpt(item, marks, options) {
  return h("span", { class: "excerpt", dir: "auto" }, wordsWithMarks(item, marks, options));
}
