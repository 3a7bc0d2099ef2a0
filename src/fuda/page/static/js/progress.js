/** How far the labelling is, and what more of it would bring. */

import { get } from "./api.js";
import { asSentence, h, percent, put } from "./dom.js";
import { fail } from "./notices.js";
import { accuracyPlot, countBars, fitted } from "./plot.js";

export class ProgressView {
  /** @param {import("./session.js").Session} session */
  constructor(session) {
    this.session = session;
    this.body = h("div", {});
    this.element = h("div", { class: "progress-view column" }, h("h2", {}, "How far am I?"), this.body);
  }

  async entered() {
    try {
      this.#draw(await get("/api/progress"));
    } catch (error) {
      fail(error);
    }
  }

  #draw({ measure, points, words, corrected, labels, per_minute: pace, outlook }) {
    const { state } = this.session;
    const now = points.at(-1);
    const left = state.total - state.done - state.skipped;
    const f1 = measure === "f1";
    const title = f1 ? "F1 of the spans proposed, before the model was told" : "Labels the model had right, before it was told";
    const facts = [
      [`${state.done.toLocaleString("en")}`, `of ${state.total.toLocaleString("en")} sentences`],
      now && [percent(now.accuracy), `${f1 ? "F1 of the spans proposed, lately" : "of labels right before they are taught"} (${percent(now.low)} to ${percent(now.high)})`],
      corrected !== null && [corrected.toFixed(1), "spans a sentence changed, added or removed, lately"],
      f1 && words !== null && [percent(words), "of words right, those without a label too"],
      pace > 0 && [pace.toFixed(1), `sentences a minute${left > 0 ? `; ${duration(left / pace)} for all` : ""}`],
    ];
    put(
      this.body,
      h("dl", { class: "facts" }, facts.filter(Boolean).map(([value, text]) => h("div", {}, h("dt", {}, text), h("dd", {}, value)))),
      outlook?.text && h("p", { class: "lead" }, asSentence(outlook.text)),
      h("section", { class: "card" }, h("h3", {}, title), points.length ? [fitted((width) => accuracyPlot(points, width, f1 ? "F1" : "Accuracy")), table(points, f1 ? "F1" : "right")] : h("p", { class: "soft" }, "The curve begins with the first sentences you accept.")),
      h("section", { class: "card" }, h("h3", {}, "Labels so far"), labels.length ? fitted((width) => countBars(labels, width)) : h("p", { class: "soft" }, "None yet.")),
    );
  }
}

function table(points, name) {
  const every = Math.ceil(points.length / 20);
  const some = points.filter((_, i) => (points.length - 1 - i) % every === 0);
  const cells = (p) => [p.n, percent(p.accuracy), `${percent(p.low)} to ${percent(p.high)}`];
  return h(
    "details",
    {},
    h("summary", {}, "As a table"),
    h(
      "table",
      { class: "numbers" },
      h("thead", {}, h("tr", {}, ["sentences", name, "band"].map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, some.map((p) => h("tr", {}, cells(p).map((cell) => h("td", {}, cell))))),
    ),
  );
}

function duration(minutes) {
  if (minutes < 90) return `${Math.max(1, Math.round(minutes))} min`;
  return minutes < 60 * 48 ? `${Math.round(minutes / 60)} h` : `${Math.round(minutes / 60 / 24)} days`;
}
