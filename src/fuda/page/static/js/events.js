/** News from the server: better models, edits of other tabs; and whether the server is there. */

import { get } from "./api.js";
import { asSentence } from "./dom.js";
import { connection, notice } from "./notices.js";

const AGAIN = 3000;

/** @param {import("./session.js").Session} session */
export function listen(session) {
  let source = null;
  let lost = false;

  const handlers = {
    model: ({ text }) => {
      notice(asSentence(text));
      session.refreshState().catch(() => {}); // the header can wait for the next answer
      session.reread().catch(() => {});
    },
    prepared: () => session.prepared().catch(() => {}), // the next answer brings what this did not
    problem: ({ text }) => notice(asSentence(text), { kind: "error" }),
    refit: ({ running }) => session.setState({ ...session.state, refitting: running }),
    items: async ({ ids, tab }) => {
      if (tab === session.tab) return;
      session.changedElsewhere(ids);
      session.refreshState().catch(() => {});
      if (ids.includes(session.current?.item.id)) await catchUp();
    },
    doubts: (event) => session.dispatchEvent(new CustomEvent("doubts", { detail: event })),
  };

  function say(error) {
    const kept = session.outbox.size;
    const what = kept ? ` ${kept === 1 ? "One answer is" : `${kept} answers are`} kept in this browser and will be sent.` : " Nothing is lost.";
    const why = error?.locked ? "Open the address that fuda label printed." : error?.stuck ? asSentence(error.message) : "The connection to the server is lost.";
    connection(why + what);
  }

  function back() {
    if (!lost) return;
    lost = false;
    connection(null);
    session.outbox.drain();
    if (!session.current && !session.outbox.size) session.advance().catch(() => {});
  }

  /** Read the shown sentence anew, which another tab may have changed. */
  async function catchUp() {
    // What cannot be read now is shown when it is sent.
    const item = await session.reread().catch(() => null);
    const shown = session.current?.item;
    if (item && item.id === shown?.id && item.version > shown.version) notice("This sentence was just changed elsewhere. When you accept yours, both versions are shown.");
  }

  function connect() {
    source?.close();
    // Browsers have six connections to a server: hidden tabs leave theirs to the others.
    if (document.hidden) return;
    source = new EventSource("/api/events");
    source.onopen = () => {
      back();
      // With what was missed meanwhile; the next answer brings what this does not.
      (session.state.preparing ? session.prepared() : session.refreshState()).catch(() => {});
      catchUp();
    };
    source.onmessage = ({ data }) => {
      const event = JSON.parse(data);
      handlers[event.type]?.(event);
    };
    source.onerror = async () => {
      // The browser may try again by itself or not; whether the server is there, an answer tells.
      source.close();
      try {
        await get("/api/state");
        setTimeout(connect, lost ? 0 : AGAIN);
      } catch (error) {
        lost = true;
        say(error);
        setTimeout(connect, AGAIN / 2);
      }
    };
  }

  session.addEventListener("connection", ({ detail }) => {
    if (detail.lost) {
      lost = true;
      say(detail.error);
    } else back();
  });
  document.addEventListener("visibilitychange", connect);
  connect();
}
