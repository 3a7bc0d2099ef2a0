/** Choosing words by mouse, pen or finger: a drag chooses a stretch, a click a word or mark. */

/** Pixels: what moves less is a click. */
const STILL = 4;

/**
 * Listen on an element whose words carry `data-i`.
 * @param {HTMLElement} host
 * @param {Object} callbacks pressed(), selecting(from, to) and selected(from, to, how), with the
 *   word where it began and the one where it is now, both included; how has the flags extend,
 *   dragged and touch
 */
export function watchPointer(host, { pressed, selecting, selected }) {
  let from = null;
  let last = null;
  let began = { x: 0, y: 0 };

  host.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.target.closest(".chip")) return;
    const word = wordAt(event);
    if (word === null) return;
    from = last = word;
    began = { x: event.clientX, y: event.clientY };
    // Touch events belong to the first element touched; captured, they survive redrawn words.
    host.setPointerCapture(event.pointerId);
    pressed();
    if (!event.shiftKey) selecting(from, last);
  });

  host.addEventListener("pointermove", (event) => {
    if (from === null) return;
    const word = wordAt(event);
    if (word === null || word === last) return;
    last = word;
    selecting(from, last);
  });

  host.addEventListener("pointerup", (event) => {
    if (from === null) return;
    const [a, b] = [from, last];
    from = null;
    const dragged = a !== b || Math.hypot(event.clientX - began.x, event.clientY - began.y) > STILL;
    selected(a, b, { extend: event.shiftKey && a === b, dragged, touch: event.pointerType === "touch" });
  });

  // A finger that moves across running text neither scrolls nor flings the page, which would
  // swallow the next tap.
  const across = (event) => {
    const [{ clientX, clientY }] = event.touches;
    if (host.classList.contains("drawn")) return; // drawings are wider than the page, which scrolls
    const choosing = from !== null && (last !== from || Math.abs(clientX - began.x) > Math.abs(clientY - began.y));
    if (choosing && event.cancelable) event.preventDefault();
  };
  host.addEventListener("touchmove", across, { passive: false });

  // The browser took the gesture over, to scroll: nothing was chosen.
  host.addEventListener("pointercancel", () => {
    from = null;
  });

  function wordAt(event) {
    const hit = document.elementFromPoint(event.clientX, event.clientY)?.closest("[data-i]");
    return hit && host.contains(hit) ? Number(hit.getAttribute("data-i")) : null;
  }
}
