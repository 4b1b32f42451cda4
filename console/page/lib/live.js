// The broker as it changes: one stream of events, opened anew when another group is looked at. The browser connects again by
// itself when the stream breaks; a broker that refuses it is asked again here.

import { path } from "./api.js";

const RETRY_MS = 3000;

export class Live {
  #source = null;
  #retry = null;
  #query = {};
  #listeners;

  /** `listeners`: overview, group, gone, decisions, and status("open" | "waiting" | "lost"). */
  constructor(listeners) {
    this.#listeners = listeners;
  }

  /** Watches that; `group` may be null. */
  watch(query) {
    this.#query = query;
    this.#open();
  }

  #open() {
    clearTimeout(this.#retry);
    this.#source?.close();
    const source = new EventSource(path(["events"], this.#query));
    this.#source = source;
    source.onopen = () => this.#listeners.status("open");
    source.onerror = () => {
      const lost = source.readyState === EventSource.CLOSED;
      this.#listeners.status(lost ? "lost" : "waiting");
      if (lost) this.#retry = setTimeout(() => this.#open(), RETRY_MS);
    };
    for (const name of ["overview", "group", "decisions"]) {
      source.addEventListener(name, (event) => this.#listeners[name](JSON.parse(event.data)));
    }
    source.addEventListener("gone", () => this.#listeners.gone());
  }
}
