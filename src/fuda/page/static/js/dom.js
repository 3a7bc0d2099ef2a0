/** Elements without innerHTML: text of the data is only ever set as text or as an attribute. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * Make an HTML element.
 * @param {string} tag
 * @param {Object<string, any>} [props] attributes; `on…` are listeners, `vars` custom properties
 * @param {...(Node|string|number|null|undefined|false|Array)} children
 * @returns {HTMLElement}
 */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** Make an SVG element; arguments as of `h`. @returns {SVGElement} */
export function s(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "vars") for (const [key, v] of Object.entries(value)) element.style.setProperty(key, v);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...flat(children));
  return element;
}

function flat(children) {
  return children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false);
}

/** Replace what an element contains. */
export function put(element, ...children) {
  element.replaceChildren(...flat(children));
  return element;
}

/** The element with this id. @returns {HTMLElement} */
export function $(id) {
  return document.getElementById(id);
}

/** Announce a text to screen readers alone. */
export function announce(text) {
  $("announcement").textContent = text;
}

/** Call `action` once, when `wait` milliseconds have passed without another call. */
export function debounced(action, wait) {
  let timer = 0;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...args), wait);
  };
}

export const percent = (p) => `${Math.round(100 * p)}%`;

/** What the server says, as a sentence. */
export const asSentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?…]$/.test(text) ? "" : ".");

export const plural = (n, one, many) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
