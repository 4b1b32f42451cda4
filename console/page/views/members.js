// Who is in the group: what each member does, how fast, and how much it has left.

import { h, text as put, attribute } from "../lib/dom.js";
import * as text from "../lib/format.js";
import { drainMs, drainWords } from "../lib/load.js";
import { say } from "../lib/names.js";
import { table } from "../lib/table.js";
import { chip } from "./partitions.js";

/** The table of members: {element, update(group, owners, loads)}. */
export function memberTable() {
  const context = { owners: null, loads: new Map() };
  const load = (row) => context.loads.get(row.member) ?? { unread: 0, slots: 0, partitions: 0 };
  const grid = table({
    caption: "Members of the group",
    key: (row) => row.member,
    empty: "No members.",
    columns: [
      {
        title: "Member",
        value: (row) => row.client_id || row.member,
        className: "cut",
        draw: (cell, row) => name(cell, row, context.owners),
        hover: (row) => row.member,
      },
      { title: "State", value: (row) => row.state, draw: state },
      { title: "Unread", number: true, value: (row) => load(row).unread, show: (row) => text.count(load(row).unread) },
      { title: "Rate", number: true, value: (row) => row.rate, show: (row) => text.rate(row.rate) },
      { title: "Drain", number: true, value: (row) => drainMs([row], context.loads), show: (row) => drainWords(drainMs([row], context.loads), text) },
      { title: "Holds", value: (row) => load(row).slots, show: (row) => holds(load(row)) },
      { title: "Client", value: (row) => row.software, show: (row) => row.software || "unknown", hover: (row) => row.software, className: "quiet cut narrow" },
      { title: "Host", value: (row) => row.host, show: (row) => row.host.replace(/^\//, ""), className: "quiet" },
      { title: "Note", value: (row) => row.ineligible, show: (row) => row.ineligible ?? "", className: "quiet cut", hover: (row) => row.ineligible },
    ],
  });
  return {
    element: grid.element,
    update(group, owners, loads) {
      Object.assign(context, { owners, loads });
      grid.update(group.members);
    },
  };
}

function name(cell, row, owners) {
  if (cell.childElementCount === 0) cell.append(chip(row.member, owners), " ", h("span"));
  say(cell.lastChild, row.client_id || text.brief(row.member), [row.client_id]);
}

function state(cell, row) {
  if (cell.childElementCount === 0) cell.append(h("span"));
  const words = row.state === "idle" ? `${row.state} ${text.duration(row.since_ms)}` : row.state;
  put(cell.firstChild, words);
  attribute(cell.firstChild, "class", `state ${row.state}`);
  attribute(cell, "title", `for ${text.duration(row.since_ms)}`);
}

function holds(load) {
  if (load.partitions === 0) return "nothing";
  const whole = load.slots / 4096;
  const share = whole >= 1 ? whole.toFixed(whole % 1 === 0 ? 0 : 1) : `${Math.round(whole * 100)}%`;
  if (load.partitions === 1) return whole === 1 ? "1 partition" : `${share} of a partition`;
  return `${share} over ${text.plural(load.partitions, "partition")}`;
}
