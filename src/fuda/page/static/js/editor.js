/** A structure that can be labelled: as text or as a drawing, by pointer or by keys. */

import { drawing } from "./arcs.js";
import { announce, percent, put } from "./dom.js";
import { watchPointer } from "./pointing.js";
import { labelButton, textOf, wordsWithMarks } from "./sentence.js";

export class Editor {
  /**
   * @param {HTMLElement} host
   * @param {Object} callbacks onchange(), and optionally onselect() and onwhy(start, end)
   */
  constructor(host, { onchange, onselect = () => {}, onwhy }) {
    this.host = host;
    this.onchange = onchange;
    this.onselect = onselect;
    this.onwhy = onwhy;
    /** Words to point out, as those that match in evidence. @type {Set<number>} */
    this.lit = new Set();
    /** First and last word of a selection in progress. @type {{from: number, to: number}|null} */
    this.selection = null;
    watchPointer(host, {
      pressed: () => (this.before = this.range),
      selecting: (from, to) => this.select(from, to),
      selected: (from, to, how) => this.#pointed(from, to, how),
    });
  }

  /**
   * @param {Object} item
   * @param {import("./draft.js").Draft} draft
   * @param {boolean} drawn as a drawing with arcs
   */
  show(item, draft, drawn) {
    Object.assign(this, { item, draft, drawn, anchor: undefined, tapped: false });
    this.selection = null;
    this.redraw();
    this.host.scrollLeft = 0;
  }

  redraw() {
    const { item, draft } = this;
    const why = (mark) => {
      this.select(mark.start, mark.end - 1);
      this.onwhy?.(mark.start, mark.end);
    };
    this.host.classList.toggle("drawn", this.drawn);
    this.host.classList.toggle("nodes", draft.nodes && !this.drawn);
    this.host.setAttribute("aria-label", `Sentence: ${textOf(item)}`);
    if (this.drawn) put(this.host, drawing(item, draft.drawn, { onchip: why }));
    else {
      const chip = (mark) => labelButton(mark, item.words, () => why(mark));
      put(this.host, wordsWithMarks(item, draft.drawn, { nodes: draft.nodes, chip }));
    }
    this.#paint();
  }

  /** Whether words run from right to left, and arrows with them. */
  get mirrored() {
    return !this.drawn && getComputedStyle(this.host).direction === "rtl";
  }

  /** The chosen stretch, end exclusive. @returns {[number, number]|null} */
  get range() {
    if (!this.selection) return null;
    const { from, to } = this.selection;
    return [Math.min(from, to), Math.max(from, to) + 1];
  }

  select(from, to = from) {
    this.selection = from === null ? null : { from, to };
    this.#paint();
    this.onselect();
  }

  /** Move the focus by words; extended, the selection grows with it. */
  move(by, extend) {
    const last = this.item.words.length - 1;
    const [start, end] = this.range ?? (by > 0 ? [0, 0] : [last + 1, last + 1]);
    const here = extend && this.selection ? this.selection.to : by > 0 ? end - 1 : start;
    const to = Math.max(0, Math.min(last, here + by));
    this.select(extend && this.selection ? this.selection.from : to, to);
    this.#tell();
  }

  /** Up and down: in drawings to the head or first dependent, else to the mark before or after. */
  jump(by) {
    const [start] = this.range ?? [by > 0 ? -1 : this.item.words.length];
    let to;
    if (this.drawn && this.selection) {
      to = by < 0 ? this.item.heads[start]?.[0] : this.item.heads.findIndex((heads) => heads.includes(start));
      if (to !== undefined && to >= 0) this.select(to);
    } else {
      const marks = this.draft.drawn;
      to = by > 0 ? marks.find((m) => m.start > start) : marks.findLast((m) => m.start < start);
      if (to) this.select(to.start, to.end - 1);
    }
    this.#tell();
  }

  /** Give the chosen words a label. @returns {boolean} whether words were chosen */
  label(name) {
    if (!this.range) return false;
    const [start, end] = this.range;
    this.draft.set(start, end, name);
    this.#changed();
    announce(`${textOf(this.item, start, end)}: ${name}`);
    return true;
  }

  remove() {
    if (!this.range) return;
    this.draft.remove(...this.range);
    this.#changed();
    announce("Label removed");
  }

  /** Why the chosen words have their label. */
  askWhy() {
    if (!this.range) return;
    const mark = this.draft.at(this.range[0]);
    this.onwhy?.(...(mark ? [mark.start, mark.end] : this.range));
  }

  #changed() {
    this.tapped = false; // the next tap is about other words
    this.redraw();
    this.onchange();
    this.onselect();
  }

  /**
   * A click chooses the mark on a word, a click again the word itself. With Shift, or by a finger
   * that taps one word after another, all from the first to the second are chosen.
   */
  #pointed(from, to, { extend, dragged, touch }) {
    const mark = dragged ? undefined : this.draft.drawn.find((m) => m.start <= from && from < m.end);
    const second = extend || (this.tapped && touch && !dragged && !mark);
    const again = mark && this.before?.[0] === mark.start && this.before[1] === mark.end;
    this.tapped = touch && !dragged && !mark && !second;
    if (second && this.anchor !== undefined) this.select(this.anchor, to);
    else {
      this.select(...(mark && !again ? [mark.start, mark.end - 1] : [from, to]));
      this.anchor = this.selection.from;
    }
    // Keys go on from here, and without the scrolling that focus would bring.
    this.host.focus({ preventScroll: true });
  }

  #paint() {
    const [start, end] = this.range ?? [-1, -1];
    const at = this.selection?.to;
    for (const element of this.host.querySelectorAll("[data-i]")) {
      const i = Number(element.getAttribute("data-i"));
      const within = i >= start && i < (element.classList.contains("gap") ? end - 1 : end);
      element.classList.toggle("chosen", within);
      if (element.classList.contains("gap")) continue;
      element.classList.toggle("at", i === at);
      element.classList.toggle("lit", this.lit.has(i));
    }
    for (const mark of this.host.querySelectorAll(".mark")) {
      const words = mark.querySelectorAll(".word");
      mark.classList.toggle("chosen", words.length === end - start && words[0].getAttribute("data-i") === String(start));
    }
    for (const arc of this.host.querySelectorAll(".arc")) {
      if (arc.classList.contains("root")) continue;
      const ends = [Number(arc.getAttribute("data-head")), Number(arc.getAttribute("data-child"))];
      arc.classList.toggle("near", end === start + 1 && ends.includes(start));
      arc.classList.toggle("path", ends.every((i) => this.lit.has(i)));
    }
    if (this.drawn) this.host.querySelector(".word.at")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  #tell() {
    if (!this.range) return;
    const [start, end] = this.range;
    const mark = this.draft.drawn.find((m) => m.start < end && m.end > start);
    const sure = mark?.by === "model" ? `, ${percent(mark.probability)}` : "";
    announce(textOf(this.item, start, end) + (mark ? `, ${mark.label}${sure}` : ""));
  }
}
