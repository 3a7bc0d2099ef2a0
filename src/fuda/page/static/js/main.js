/** The page: starts the session and shows one view at a time, by the address after #. */

import { get } from "./api.js";
import { conflictDialog, keysDialog, settingsDialog } from "./dialogs.js";
import { $, h, plural, put } from "./dom.js";
import { DoubtsView } from "./doubts.js";
import { listen } from "./events.js";
import { LabelView } from "./label.js";
import { ListView } from "./list.js";
import { fail, notice } from "./notices.js";
import { ProgressView } from "./progress.js";
import { Session } from "./session.js";

const FORMATS = [
  ["model", "Model", "to label files with fuda tag"],
  ["conll", "CoNLL", "one word per line"],
  ["jsonl", "JSON Lines", "text with character offsets"],
  ["conllu", "CoNLL-U", "with heads, where there are any"],
];

const COMPILING = "The first time, code is compiled for this computer, which may take a minute.";

async function start() {
  let state;
  try {
    state = await get("/api/state");
  } catch (error) {
    put($("main"), h("section", { class: "card done" }, h("h2", {}, "The page cannot start"), h("p", {}, error.message), h("p", { class: "soft" }, "Open the address that fuda label printed.")));
    return;
  }
  const session = new Session(state);
  const views = { label: new LabelView(session), sentences: new ListView(session), doubts: new DoubtsView(session), progress: new ProgressView(session) };
  wire(session, views);
  header(session);
  const show = () => route(session, views);
  addEventListener("hashchange", show);
  listen(session);
  show();
  await session.start(!/^#label\/\d+/.test(location.hash)).catch(fail);
}

/** Show the view of the address: #label, #label/12 (a sentence), #label/12/3-5 (and why), … */
async function route(session, views) {
  if (location.hash === "#main") return $("main").focus(); // the link that skips the header
  const [name, id, stretch] = location.hash.slice(1).split("/");
  const key = Object.hasOwn(views, name) ? name : "label";
  const view = views[key];
  for (const link of document.querySelectorAll(".views a")) {
    if (link.hash === `#${key}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  put($("main"), view.element);
  view.entered();
  if (key !== "label" || !/^\d+$/.test(id ?? "")) return;
  try {
    await session.open(Number(id));
    const [from, to] = (stretch ?? "").split("-").map(Number);
    if (to > from) view.ask(from, to);
  } catch (error) {
    fail(error);
  }
  // Gone on to the next sentence, a reload must not come back to this one.
  history.replaceState(null, "", "#label");
}

function wire(session, views) {
  // Enter is to accept the sentence then, and not to press the button that opened what is closed.
  const resume = () => views.label.element.isConnected && views.label.entered();
  const show = (dialog) => dialog.addEventListener("close", resume);
  addEventListener("keydown", (event) => {
    if (event.key === "?" && !event.target.closest("input[type=text], input[type=search], dialog")) show(keysDialog());
    else if (views.label.element.isConnected) views.label.key(event);
  });
  $("keys").addEventListener("click", () => show(keysDialog()));
  $("settings").addEventListener("click", () => show(settingsDialog(session)));
  $("export-menu").addEventListener("toggle", ({ newState }) => newState === "closed" && resume());
  session.addEventListener("conflict", ({ detail }) => conflictDialog(session, detail.entry, detail.answer));
  session.addEventListener("refused", ({ detail }) => {
    const open = { text: "Open it", run: () => session.open(detail.entry.id).catch(fail) };
    notice(detail.error.message, { kind: "error", action: open });
  });
}

function header(session) {
  const draw = () => {
    const { state } = session;
    $("title").textContent = state.title;
    document.title = `${state.title} – Fuda`;
    put(
      $("model"),
      h("span", { class: "count" }, h("b", {}, state.done.toLocaleString("en")), ` of ${state.total.toLocaleString("en")}`),
      h("span", { class: "soft", title: state.preparing ? COMPILING : "" }, state.preparing ? "preparing the model …" : state.refitting ? "refitting …" : state.done ? `taught by ${plural(state.done, "sentence", "sentences")}` : "no sentence taught yet"),
    );
  };
  session.addEventListener("state", draw);
  draw();
  put(
    $("export-menu"),
    FORMATS.map(([format, name, text]) => h("a", { href: `/api/export?format=${format}`, download: "", onclick: () => $("export-menu").hidePopover() }, h("b", {}, name), h("span", { class: "soft" }, text))),
  );
}

start();
