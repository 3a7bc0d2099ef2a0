/** Trees and graphs: words in a row, arcs from heads to dependents above, labels below, as SVG. */

import { colour } from "./colours.js";
import { percent, s } from "./dom.js";

const GAP = 14;
const STEP = 17;
const WORD = 16;
const CHIP = 11.5;

/**
 * Draw a structure.
 * @param {{words: string[], heads: number[][]}} item
 * @param {import("./draft.js").Mark[]} marks
 * @param {{onchip?: (mark: Object) => void}} [options]
 * @returns {SVGElement}
 */
export function drawing(item, marks, { onchip } = {}) {
  const columns = layout(item.words, marks);
  const arcs = levels(item.heads ?? []);
  const top = STEP * (1 + Math.max(0, ...arcs.map((a) => a.level)));
  const base = top + 8;
  const width = columns.length ? columns.at(-1).right + GAP / 2 : 0;
  const height = base + 62;
  return s(
    "svg",
    { class: "drawing", width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `${item.words.length} nodes` },
    arcs.map((arc) => arcPath(arc, columns, base)),
    (item.heads ?? []).map((heads, i) => !heads.length && rootTick(columns[i], base)),
    item.words.map((word, i) => node(word, i, columns[i], base)),
    marks.map((mark) => chip(mark, columns, base, item.words, onchip)),
  );
}

/** Where the words stand: each column has room for its word and its label. */
function layout(words, marks) {
  const label = new Map(marks.filter((m) => m.end === m.start + 1).map((m) => [m.start, m]));
  let x = GAP / 2;
  return words.map((word, i) => {
    const mark = label.get(i);
    const inner = Math.max(26, textWidth(word, WORD), mark ? textWidth(chipText(mark), CHIP, 600) + 12 : 0);
    const column = { left: x, right: x + inner, middle: x + inner / 2, half: inner / 2 };
    x += inner + GAP;
    return column;
  });
}

let pen;

function textWidth(text, size, weight = 400) {
  pen ??= document.createElement("canvas").getContext("2d");
  pen.font = `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

/** Short arcs lie below the longer ones that they would cross or touch. */
function levels(heads) {
  const arcs = heads.flatMap((parents, child) => parents.map((head) => ({ head, child, a: Math.min(head, child), b: Math.max(head, child) })));
  arcs.sort((x, y) => x.b - x.a - (y.b - y.a) || x.a - y.a);
  const placed = [];
  for (const arc of arcs) {
    const under = placed.filter((p) => p.a < arc.b && arc.a < p.b).map((p) => p.level);
    arc.level = 1 + Math.max(0, ...under);
    placed.push(arc);
  }
  return arcs;
}

function arcPath({ head, child, level }, columns, base) {
  const side = Math.sign(child - head);
  const from = columns[head].middle + side * Math.min(5, columns[head].half / 2);
  const to = columns[child].middle - side * Math.min(3, columns[child].half / 3);
  const y = base - 4;
  const rise = STEP * level;
  const bend = Math.min(Math.abs(to - from) / 2, 10 + 2 * level) * side;
  const path = `M${from} ${y}C${from} ${y - rise} ${from} ${y - rise} ${from + bend} ${y - rise}H${to - bend}C${to} ${y - rise} ${to} ${y - rise} ${to} ${y - 5}`;
  return s("g", { class: "arc", "data-head": head, "data-child": child }, s("path", { d: path }), s("path", { class: "tip", d: `M${to - 3.5} ${y - 6}h7l-3.5 6z` }));
}

function rootTick(column, base) {
  return s("g", { class: "arc root" }, s("path", { d: `M${column.middle} 4V${base - 9}` }), s("path", { class: "tip", d: `M${column.middle - 3.5} ${base - 10}h7l-3.5 6z` }));
}

function node(word, i, column, base) {
  return s(
    "g",
    { class: "word", "data-i": i },
    s("rect", { class: "hit", x: column.left - GAP / 2 + 1, y: base - 2, width: column.right - column.left + GAP - 2, height: 29, rx: 5 }),
    s("text", { x: column.middle, y: base + 18, "font-size": WORD, "text-anchor": "middle" }, word),
  );
}

const chipText = (mark) => (mark.by === "model" && mark.probability < 0.95 ? `${mark.label} ${percent(mark.probability)}` : mark.label);

function chip(mark, columns, base, words, onchip) {
  const [left, right] = [columns[mark.start].left - 2, columns[mark.end - 1].right + 2];
  const press = (event) => {
    if (event.type === "keydown" && event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    event.stopPropagation();
    onchip(mark);
  };
  const button = onchip && { role: "button", tabindex: 0, onclick: press, onkeydown: press, "aria-label": `${mark.label}: ${words.slice(mark.start, mark.end).join(" ")}. Why?` };
  return s(
    "g",
    { class: `chip ${colour(mark.label)}${mark.probability < 0.6 ? " unsure" : ""}`, vars: { "--p": mark.probability }, "data-label": mark.label, ...button },
    s("rect", { x: left, y: base + 31, width: right - left, height: 20, rx: 6 }),
    s("text", { x: (left + right) / 2, y: base + 45, "font-size": CHIP, "text-anchor": "middle" }, chipText(mark)),
  );
}
