// Elements, made and changed. Text is always text: nothing here, nor anywhere else, reads markup from a string.

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "path", "rect", "line", "circle", "g", "defs", "pattern", "title"]);

/**
 * An element. `props`: `on` has listeners by event, `class` and all else are attributes; null and false are left out.
 * Children are elements, texts, or null.
 */
export function h(tag, props = {}, ...children) {
  const element = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else {
      attribute(element, name, value);
    }
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

/** Sets an attribute if it differs; null and false take it away. */
export function attribute(element, name, value) {
  if (value == null || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
    return;
  }
  const text = value === true ? "" : String(value);
  if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}

/** Sets the text if it differs, so that a page that changes little costs little, and a selection survives. */
export function text(element, value) {
  const wanted = String(value);
  if (element.textContent !== wanted) element.textContent = wanted;
}

/** Has an element contain exactly these children, leaving those in place that are. */
export function children(element, wanted) {
  wanted.forEach((child, at) => {
    const now = element.childNodes[at];
    if (now !== child) element.insertBefore(child, now ?? null);
  });
  while (element.childNodes.length > wanted.length) element.lastChild.remove();
}

/**
 * Children by key: `make(item)` gives {element, update(item)} for what is new, `update` is called for what stays.
 * Returns a function that takes the items.
 */
export function keyed(parent, key, make) {
  let known = new Map();
  return (items) => {
    const next = new Map();
    for (const item of items) {
      const id = key(item);
      const part = known.get(id) ?? make(item);
      part.update(item);
      next.set(id, part);
    }
    children(parent, [...next.values()].map((part) => part.element));
    known = next;
  };
}
