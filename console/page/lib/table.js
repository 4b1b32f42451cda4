// Tables that are sorted by a click and change in place: a row that stays keeps its element, a cell that says the same is not
// touched. That keeps a thousand rows a second cheap, and the focus where it was.

import { attribute, h, keyed, text } from "./dom.js";

/**
 * `columns`: [{title, value(row) -> sortable, show(row) -> text or element, number, className, href(row)}].
 * `key(row)` names a row. `sort` is [column, 1 or -1] to begin with; without it rows stay as they come.
 */
export function table({ caption, columns, key, sort = null, empty = "Nothing yet." }) {
  let [order, rows] = [sort, []];
  const heads = columns.map((column, at) => head(column, () => choose(at)));
  const body = h("tbody");
  const nothing = h("p", { class: "empty" }, empty);
  const grid = h("table", {}, h("caption", { class: "hidden-label" }, caption), h("thead", {}, h("tr", {}, heads)), body);
  const element = h("div", {}, grid, nothing);
  const fill = keyed(body, key, (row) => line(columns, row));

  function choose(at) {
    const first = columns[at].number ? -1 : 1;
    order = order && order[0] === at ? [at, -order[1]] : [at, first];
    draw();
  }

  function draw() {
    heads.forEach((cell, at) => {
      const is = order && order[0] === at;
      attribute(cell, "aria-sort", is ? (order[1] > 0 ? "ascending" : "descending") : null);
    });
    const shown = order ? sorted(rows, columns[order[0]].value, order[1]) : rows;
    fill(shown);
    grid.hidden = rows.length === 0;
    nothing.hidden = rows.length > 0;
  }

  return {
    element,
    update(news) {
      rows = news;
      draw();
    },
  };
}

function head(column, click) {
  const label = column.value
    ? h("button", { type: "button", on: { click } }, column.title)
    : column.title === "" ? h("span", { class: "hidden-label" }, column.label) : column.title;
  return h("th", { scope: "col", class: column.number ? "number" : null }, label);
}

function line(columns, row) {
  const cells = columns.map((column) => {
    const cell = h("td", { class: [column.number ? "number" : "", column.className ?? ""].join(" ").trim() || null });
    const inner = column.href ? h("a", { href: column.href(row) }) : cell;
    if (inner !== cell) cell.append(inner);
    return { cell, inner };
  });
  return {
    element: h("tr", {}, cells.map((one) => one.cell)),
    update(now) {
      columns.forEach((column, at) => {
        const { cell, inner } = cells[at];
        if (column.draw) column.draw(cell, now);
        else text(inner, column.show(now));
        if (column.hover) attribute(cell, "title", column.hover(now));
      });
    },
  };
}

/** Sorted by a value; what has none comes last either way. Equal ones stay as they were. */
export function sorted(rows, value, direction) {
  const compare = (a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x == null || y == null) return (x == null) - (y == null);
    const way = typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x - y;
    return way * direction;
  };
  return [...rows].sort(compare);
}
