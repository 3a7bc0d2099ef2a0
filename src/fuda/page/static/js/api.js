/** Requests to the server of this page. Callers tell three kinds of failures apart. */

/** The server did not answer: nothing is known about what it did. */
export class Unreachable extends Error {}

/** The server refused; `message` is its sentence. */
export class Refused extends Error {
  /** @param {number} status @param {Object} answer */
  constructor(status, answer) {
    super(answer.error || `The server answered ${status}.`);
    this.status = status;
    this.answer = answer;
  }

  /** The cookie is missing or old: the address that the command printed sets it again. */
  get locked() {
    return this.status === 401 || this.status === 403;
  }

  /** The store cannot be written to now, as on a full disk; it may be later. */
  get stuck() {
    return this.status === 503;
  }
}

/** Another edit of the same sentence came first. `answer` has yours and theirs. */
export class Conflict extends Refused {}

const MAX_WAIT = 20_000;

async function request(path, options) {
  let response, answer;
  try {
    response = await fetch(path, { ...options, credentials: "same-origin", signal: AbortSignal.timeout(MAX_WAIT) });
    answer = await response.json().catch(() => ({}));
  } catch (error) {
    throw new Unreachable("The server does not answer.", { cause: error });
  }
  if (response.status === 409) throw new Conflict(409, answer);
  if (!response.ok) throw new Refused(response.status, answer);
  return answer;
}

/** @param {string} path @param {Object} [query] entries that are null or empty are left out */
export function get(path, query = {}) {
  const given = Object.entries(query).filter(([, v]) => v !== null && v !== undefined && v !== "");
  const search = new URLSearchParams(given).toString();
  return request(search ? `${path}?${search}` : path, {});
}

/** @param {string} path @param {Object} body */
export function post(path, body) {
  return request(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
}
