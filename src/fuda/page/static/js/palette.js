/** The labels to choose from, with their digits, and a field for a new one. */

import { post } from "./api.js";
import { colour } from "./colours.js";
import { h, put } from "./dom.js";
import { fail } from "./notices.js";

const DIGITS = "1234567890";

export class Palette {
  /** @param {import("./session.js").Session} session @param {(label: string) => void} choose */
  constructor(session, choose) {
    this.session = session;
    this.choose = choose;
    this.element = h("div", { class: "palette", role: "group", "aria-label": "Labels" });
    this.chosen = null;
    session.addEventListener("state", () => this.draw());
    this.draw();
  }

  /** The label that a digit stands for. */
  labelOf(key) {
    const place = DIGITS.indexOf(key);
    return place < 0 ? undefined : this.session.state.labels[place];
  }

  /** Show which label the chosen words have, and whether there are any to label. */
  mark(label, ready) {
    this.chosen = label;
    this.element.classList.toggle("ready", ready);
    for (const button of this.element.querySelectorAll(".pick")) {
      button.setAttribute("aria-pressed", String(button.dataset.label === label));
    }
  }

  /** Put the cursor where labels are searched or added. */
  focusField() {
    this.element.querySelector("input").focus();
  }

  draw() {
    const { labels } = this.session.state;
    const known = labels.join("\n");
    if (known === this.known) return;
    this.known = known;
    const pick = (label, i) =>
      h(
        "button",
        { type: "button", class: `pick ${colour(label)}`, "data-label": label, "aria-pressed": String(label === this.chosen), onclick: () => this.choose(label) },
        i < DIGITS.length && h("kbd", { "aria-hidden": "true" }, DIGITS[i]),
        h("bdi", {}, label),
      );
    const field = h("input", {
      type: "text", maxlength: 60, size: 11, autocomplete: "off", spellcheck: "false",
      placeholder: labels.length ? "+ label" : "First label …", "aria-label": "Find or add a label",
      onkeydown: (event) => this.#typed(event),
      oninput: (event) => this.#filter(event.target.value.trim()),
    });
    this.element.classList.toggle("many", labels.length > DIGITS.length);
    put(this.element, labels.map(pick), field);
  }

  #filter(text) {
    for (const button of this.element.querySelectorAll(".pick")) {
      button.hidden = !button.dataset.label.toLowerCase().includes(text.toLowerCase());
    }
  }

  async #typed(event) {
    event.stopPropagation();
    const field = event.target;
    if (event.key === "Escape") {
      field.value = "";
      this.#filter("");
      field.blur();
    }
    const text = field.value.trim();
    if (event.key !== "Enter" || !text) return;
    event.preventDefault();
    const { labels } = this.session.state;
    const same = (label) => label.toLowerCase() === text.toLowerCase();
    const starting = labels.filter((label) => label.toLowerCase().startsWith(text.toLowerCase()));
    let label = labels.find(same) ?? (starting.length === 1 ? starting[0] : undefined);
    field.value = "";
    this.#filter("");
    if (label === undefined) {
      label = text;
      try {
        this.session.setState(await post("/api/labels", { add: text }));
      } catch (error) {
        fail(error);
        return;
      }
    }
    this.choose(label);
  }
}
