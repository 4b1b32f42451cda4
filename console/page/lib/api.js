// Requests to the broker's API. A refusal is thrown with the broker's own words.

const TOKEN = "anabranch-token";

export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** The path of the API with a query; what is null is left out. */
export function path(parts, query = {}) {
  const wanted = Object.entries(query).filter(([, value]) => value != null && value !== "");
  const search = new URLSearchParams(wanted.map(([name, value]) => [name, String(value)]));
  const tail = search.size > 0 ? `?${search}` : "";
  return `/api/v1/${parts.map(encodeURIComponent).join("/")}${tail}`;
}

export async function get(parts, query) {
  return answer(await reach(path(parts, query), {}));
}

/** Gives an order. `askToken` is called if the broker wants a token and this page has none that is right. */
export async function post(parts, body, askToken) {
  const order = () => {
    const headers = { "content-type": "application/json" };
    const token = sessionStorage.getItem(TOKEN);
    if (token) headers.authorization = `Bearer ${token}`;
    return reach(path(parts), { method: "POST", headers, body: JSON.stringify(body ?? {}) });
  };
  let response = await order();
  while (response.status === 401) {
    const token = await askToken();
    if (!token) break;
    sessionStorage.setItem(TOKEN, token);
    response = await order();
  }
  return answer(response);
}

async function reach(url, options) {
  try {
    return await fetch(url, options);
  } catch {
    throw new Refused(0, "unreachable", "the broker does not answer");
  }
}

async function answer(response) {
  const body = await response.json().catch(() => null);
  if (response.ok && body) return body;
  const error = body?.error ?? { code: "unknown", message: `the broker answered with status ${response.status}` };
  throw new Refused(response.status, error.code, error.message);
}
