// Orders to the broker. Whatever changes something for good is rehearsed first: the broker says what it would do.

import { get, post } from "../lib/api.js";
import { cli } from "../lib/cli.js";
import { sentence } from "../lib/decisions.js";
import { h, text as put } from "../lib/dom.js";
import * as text from "../lib/format.js";
import { say } from "../lib/names.js";
import { field, select, toast } from "../lib/parts.js";

/** Shows a dialog; it is gone once it is closed. */
function open(title, ...content) {
  const id = "dialog-title";
  const heading = h("h2", { id });
  say(heading, title);
  const form = h("form", { method: "dialog" }, heading, ...content);
  const dialog = h("dialog", { "aria-labelledby": id, on: { close: () => dialog.remove() } }, form);
  document.body.append(dialog);
  dialog.showModal();
  return { dialog, form };
}

const button = (words, tone, click) => h("button", { class: `action ${tone}`, type: "button", on: { click } }, words);

/** Asks for the token that the broker wants from other machines; null if nobody gives it. */
export function askToken() {
  return new Promise((resolve) => {
    const input = h("input", { type: "password", autocomplete: "off", required: true });
    const submit = h("button", { class: "action main", type: "submit", value: "ok" }, "Use it");
    const { dialog, form } = open(
      "The broker wants a token",
      h("p", {}, "Orders from another machine need the token in the file that the broker's setting admin.token.file names. It is kept until this tab is closed."),
      field("Token", input),
      h("div", { class: "buttons" }, button("Cancel", "", () => dialog.close()), submit),
    );
    form.addEventListener("submit", () => resolve(input.value.trim()));
    dialog.addEventListener("close", () => resolve(null));
    input.focus();
  });
}

function failed(error) {
  return h("p", { class: "problem" }, error.message);
}

/** Tells the planner to leave a group alone, or to go on. */
export async function setPaused(app, group, paused) {
  try {
    await post(["groups", group, paused ? "pause" : "resume"], {}, askToken);
    toast(paused ? `The planner leaves ${group} alone.` : `The planner goes on with ${group}.`);
    app.refresh();
  } catch (error) {
    toast(error.message, "bad");
  }
}

/** Splits or merges a partition: what would be decided is shown first. */
export function orderDialog(app, name, verb, group, owners) {
  const places = group.partitions.map((one) => [JSON.stringify([one.topic, one.partition]), `${one.topic}:${one.partition}`]);
  const place = select(places, { on: { change: () => rehearse() } });
  const result = h("div", { class: "result", role: "status" });
  const command = h("code");
  const act = button(verb === "split" ? "Split" : "Merge", "main", () => order());
  const { dialog } = open(
    verb === "split" ? `Split a partition of ${name}` : `Merge the shares of a partition of ${name}`,
    h("p", { class: "quiet" }, verb === "split" ? "Its unread records are divided among one more member." : "Its shares flow together at one member."),
    field("Partition", place),
    result,
    h("div", { class: "buttons" }, command, button("Cancel", "", () => dialog.close()), act),
  );
  let asked = 0;

  function body(dryRun) {
    const [topic, partition] = JSON.parse(place.value);
    return { topic, partition, dry_run: dryRun };
  }

  async function rehearse() {
    const mine = ++asked;
    act.disabled = true;
    if (!place.value) return put(result, "The group has no partitions.");
    const { topic, partition } = body(true);
    put(command, cli[verb](name, topic, partition, false));
    result.replaceChildren(h("p", { class: "quiet" }, "Asking the planner…"));
    try {
      const plan = await post(["groups", name, verb], body(true), askToken);
      if (mine !== asked) return;
      show(result, plan.decisions, owners);
      act.disabled = !plan.decisions.some((one) => one.outcome === "decided");
    } catch (error) {
      if (mine === asked) result.replaceChildren(failed(error));
    }
  }

  async function order() {
    act.disabled = true;
    try {
      const done = await post(["groups", name, verb], body(false), askToken);
      const decided = done.decisions.find((one) => one.outcome === "decided");
      if (!decided) return show(result, done.decisions, owners);
      dialog.close();
      toast(spoken(decided, owners));
      app.refresh();
    } catch (error) {
      result.replaceChildren(failed(error));
    }
  }

  rehearse();
}

function spoken(one, owners) {
  return sentence(one, (id) => owners.name(id), owners.ids());
}

function show(result, decisions, owners) {
  const lines = decisions.map((one) => {
    const tone = one.outcome === "decided" ? "good" : "warn";
    const words = h("span", { title: one.text });
    say(words, spoken(one, owners), [one.group, ...owners.ids().map((id) => owners.name(id))]);
    return h("p", {}, h("span", { class: `badge ${tone}` }, one.outcome === "decided" ? one.kind : "refused"), " ", words);
  });
  result.replaceChildren(...(lines.length > 0 ? lines : [h("p", { class: "quiet" }, "There is nothing to do.")]));
}

const TARGETS = [
  ["earliest", "to the first message"],
  ["latest", "behind the last message"],
  ["offset", "to an offset"],
  ["time_ms", "to a time"],
  ["shift_by", "by a number of messages"],
];

/** Sets committed offsets, after showing what that does. */
export async function resetDialog(app, name) {
  let offsets;
  try {
    offsets = await get(["groups", name, "offsets"]);
  } catch (error) {
    return toast(error.message, "bad");
  }
  const topics = [...new Set(offsets.places.map((place) => place.topic))];
  const topic = select(topics.map((one) => [one, one]), { on: { change: stale } });
  const partitions = h("input", { placeholder: "all", pattern: "[0-9, ]*", class: "small", on: { input: stale } });
  const to = select(TARGETS, { on: { change: kind } });
  const value = h("input", { class: "small", on: { input: stale } });
  const valueField = field("Value", value);
  const result = h("div", { class: "result", role: "status" });
  const command = h("code");
  const preview = button("Show what would happen", "", () => rehearse());
  const act = button("Reset", "risky", () => execute());
  const { dialog } = open(
    `Reset offsets of ${name}`,
    h("p", { class: "quiet" }, "The group reads on from there when its members are back. Nothing is changed before you have seen what."),
    h("div", { class: "fields" }, field("Topic", topic), field("Partitions", partitions), field("Where", to), valueField),
    result,
    h("div", { class: "buttons" }, command, button("Cancel", "", () => dialog.close()), preview, act),
  );

  function stale() {
    act.disabled = true;
    put(act, "Reset");
    result.replaceChildren();
    put(command, "");
  }

  function kind() {
    const isTime = to.value === "time_ms";
    valueField.hidden = ["earliest", "latest"].includes(to.value);
    value.type = isTime ? "datetime-local" : "number";
    value.step = "1";
    stale();
  }

  function order(execute) {
    const numbers = partitions.value.split(/[ ,]+/).filter(Boolean).map(Number);
    return { topic: topic.value, partitions: numbers.length > 0 ? numbers : null, to: target(to.value, value.value), execute };
  }

  async function run(executing) {
    const wanted = order(executing);
    put(command, cli.reset(name, wanted));
    const reset = await post(["groups", name, "reset"], wanted, askToken);
    result.replaceChildren(steps(reset.steps));
    return reset.steps;
  }

  async function rehearse() {
    try {
      const planned = await run(false);
      const moved = planned.filter((step) => step.current !== step.new_offset).length;
      act.disabled = moved === 0;
      put(act, moved === 0 ? "Nothing to reset" : `Reset ${text.plural(moved, "partition")}`);
    } catch (error) {
      result.replaceChildren(failed(error));
    }
  }

  async function execute() {
    act.disabled = true;
    try {
      const done = await run(true);
      dialog.close();
      toast(`Offsets of ${text.plural(done.length, "partition")} of ${topic.value} were reset for ${name}.`);
      app.refresh();
    } catch (error) {
      result.replaceChildren(failed(error));
    }
  }

  kind();
  if (topics.length === 0) result.replaceChildren(h("p", { class: "quiet" }, "The group has committed nothing."));
  preview.disabled = topics.length === 0;
}

function target(kind, value) {
  if (kind === "earliest" || kind === "latest") return kind;
  return { [kind]: kind === "time_ms" ? new Date(value).getTime() : Number(value) };
}

function steps(all) {
  const rows = all.map((step) => {
    const change = step.current == null ? "–" : text.count(step.new_offset - step.current);
    const cells = [step.partition, step.current == null ? "–" : text.count(step.current), text.count(step.new_offset), change, text.count(step.log_end - step.new_offset)];
    return h("tr", {}, cells.map((cell) => h("td", { class: "number" }, String(cell))));
  });
  const heads = ["Partition", "Now", "Then", "Change", "To read"].map((one) => h("th", { scope: "col", class: "number" }, one));
  return h("table", {}, h("caption", { class: "hidden-label" }, "What the reset does"), h("thead", {}, h("tr", {}, heads)), h("tbody", {}, rows));
}
