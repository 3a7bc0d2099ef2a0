/** Small plots as SVG; everything that can be seen in them is also there as text. */

import { colour } from "./colours.js";
import { h, percent, s } from "./dom.js";

const HEIGHT = 260;
const WIDEST = 760;
const EDGE = { left: 44, right: 14, top: 14, bottom: 42 };

/** A plot drawn anew for every width of its place, so that its letters keep their size. */
export function fitted(draw) {
  const place = h("div", { class: "plot-place" });
  const watcher = new ResizeObserver(([{ contentRect }]) => {
    if (contentRect.width > 0) place.replaceChildren(draw(Math.min(WIDEST, contentRect.width)));
  });
  watcher.observe(place);
  return place;
}

/**
 * Accuracy, or another measure of it, over sentences with its band.
 * @param {{n: number, accuracy: number, low: number, high: number}[]} points
 * @param {number} width in pixels
 * @param {string} name of the measure
 * @returns {SVGElement}
 */
export function accuracyPlot(points, width, name) {
  const first = points[0].n;
  const last = points.at(-1).n;
  const floor = Math.floor(Math.min(...points.map((p) => p.low)) * 10) / 10;
  const x = scale(points.length > 1 ? first : 0, last, EDGE.left, width - EDGE.right);
  const y = scale(floor < 1 ? floor : 0.9, 1, HEIGHT - EDGE.bottom, EDGE.top);
  const line = points.map((p) => `${x(p.n)} ${y(p.accuracy)}`).join("L");
  const band = [...points.map((p) => `${x(p.n)} ${y(p.high)}`), ...points.toReversed().map((p) => `${x(p.n)} ${y(p.low)}`)].join("L");
  const end = points.at(-1);
  return s(
    "svg",
    { class: "plot", width, height: HEIGHT, role: "img", "aria-label": `${name} from ${percent(points[0].accuracy)} to ${percent(end.accuracy)} over ${last} sentences` },
    ticks(floor, 1, 5).map((t) => yTick(t, y, width)),
    ticks(first, last, width / 90).filter(Number.isInteger).map((t) => s("text", { class: "tick", x: x(t), y: HEIGHT - 24, "text-anchor": "middle" }, t.toLocaleString("en"))),
    s("text", { class: "tick", x: width - EDGE.right, y: HEIGHT - 5, "text-anchor": "end" }, "sentences taught"),
    s("path", { class: "band", d: `M${band}Z` }),
    s("path", { class: "line", d: `M${line}` }),
    s("circle", { class: "end", cx: x(end.n), cy: y(end.accuracy), r: 4 }),
    points.map((p) => s("rect", { class: "hit", x: x(p.n) - 5, y: EDGE.top, width: 10, height: HEIGHT - EDGE.top - EDGE.bottom }, s("title", {}, pointText(p)))),
  );
}

/** A point in words. */
export const pointText = (p) => `after ${p.n}: ${percent(p.accuracy)} (${percent(p.low)} to ${percent(p.high)})`;

function yTick(t, y, width) {
  return [
    s("line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: y(t), y2: y(t) }),
    s("text", { class: "tick", x: EDGE.left - 8, y: y(t) + 4, "text-anchor": "end" }, percent(t)),
  ];
}

/**
 * Counts per label as bars.
 * @param {{label: string, count: number}[]} counts
 * @param {number} width in pixels
 */
export function countBars(counts, width) {
  const row = 26;
  const most = Math.max(1, ...counts.map((c) => c.count));
  const name = Math.min(width / 3, 24 + 8.5 * Math.max(...counts.map((c) => c.label.length)));
  const height = counts.length * row;
  const text = counts.map((c) => `${c.label} ${c.count}`).join(", ");
  const length = (count) => Math.max(2, ((width - name - 60) * count) / most);
  return s(
    "svg",
    { class: "plot counts", width, height, role: "img", "aria-label": `Counts per label: ${text}` },
    counts.map((c, i) =>
      s(
        "g",
        { class: colour(c.label), transform: `translate(0 ${i * row})` },
        s("text", { class: "name", x: name - 12, y: 17, "text-anchor": "end" }, c.label),
        s("rect", { class: "bar", x: name, y: 4, width: length(c.count), height: 18, rx: 4 }),
        s("text", { class: "tick", x: name + length(c.count) + 8, y: 18 }, c.count.toLocaleString("en")),
      ),
    ),
  );
}

const scale = (from, to, low, high) => (value) => low + ((value - from) / (to - from || 1)) * (high - low);

/** Round numbers between two, about so many. */
function ticks(from, to, count) {
  const rough = (to - from || 1) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((v) => v >= rough);
  const out = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to + 1e-9; i++) out.push(Number((i * step).toPrecision(12)));
  return out;
}
