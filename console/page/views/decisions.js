// What was decided and refused, with the broker's own sentences.

import { cli } from "../lib/cli.js";
import { label, sentence, tone } from "../lib/decisions.js";
import { attribute, h, keyed, text as put } from "../lib/dom.js";
import * as text from "../lib/format.js";
import { say } from "../lib/names.js";
import { link, panel } from "../lib/parts.js";

/** A list, newest first: {element, update(decisions, now)}. */
export function decisionList({ withGroup = false, withTopic = true, max = 100, name = (id) => text.brief(id), ids = () => [] } = {}) {
  const list = h("ol", { class: "decisions" });
  const empty = h("p", { class: "empty" }, "Nothing was decided yet.");
  const fill = keyed(list, (one) => `${one.group}/${one.topic}/${one.seq}/${one.outcome}`, () => item({ withGroup, withTopic, name, ids }));
  return {
    element: h("div", {}, list, empty),
    update(decisions) {
      const shown = decisions.slice(-max).reverse();
      fill(shown);
      empty.hidden = shown.length > 0;
    },
  };
}

function item({ withGroup, withTopic, name, ids }) {
  const time = h("time");
  const badge = h("span");
  const group = h("a");
  const place = h("span");
  const words = h("span");
  const where = h("span", { class: "where" }, withGroup ? [group, " "] : null, place, " ");
  const element = h("li", {}, time, h("span", {}, badge), h("span", { class: "words" }, where, words));
  return {
    element,
    update(one) {
      attribute(element, "class", tone(one));
      put(time, text.clock(one.time_ms));
      attribute(time, "title", text.stamp(one.time_ms));
      put(badge, label(one, text));
      attribute(badge, "class", `badge tone-${tone(one)}`);
      say(group, one.group, [one.group]);
      if (one.group) attribute(group, "href", link.group(one.group));
      const at = one.topic === "" ? "" : one.partition < 0 ? one.topic : `${one.topic}:${one.partition}`;
      say(place, withTopic ? at : "", [at]);
      say(words, sentence(one, name, ids()), [one.group, ...ids().map(name)]);
      attribute(words, "title", one.text);
    },
  };
}

/** The page of all decisions. */
export function decisionsView() {
  const refusals = h("input", { type: "checkbox", checked: true, on: { change: () => draw() } });
  const box = panel("Decisions", {
    command: () => cli.decisions(null),
    actions: [h("label", {}, refusals, "refusals")],
  });
  box.body.className = "";
  const list = decisionList({ withGroup: true, max: 300 });
  box.body.append(list.element);
  let state = null;

  function draw() {
    if (!state) return;
    const wanted = state.decisions.filter((one) => {
      const matches = state.filter === "" || `${one.group} ${one.topic} ${one.text}`.toLowerCase().includes(state.filter);
      return matches && (refusals.checked || one.outcome !== "refused");
    });
    list.update(wanted);
    box.note(text.count(wanted.length));
  }

  return {
    title: "Decisions",
    element: [h("h1", { class: "hidden-label" }, "Decisions"), box.element],
    update(news) {
      state = news;
      draw();
    },
  };
}
