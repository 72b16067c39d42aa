// Making parts of a page. Text only ever becomes a text node: nothing here, or anywhere else, reads HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children; `on` holds listeners, `dataset` data attributes. */
export function make(tag, attributes = {}, ...children) {
  return build(document.createElement(tag), attributes, children);
}

/** The same for a drawing. */
export function draw(tag, attributes = {}, ...children) {
  return build(document.createElementNS(SVG, tag), attributes, children);
}

/** Put these children in place of those an element has. */
export function fill(element, ...children) {
  element.replaceChildren(...nodes(children));
  return element;
}

/** The one element that a selector names; a page without it is a mistake of ours. */
export function find(selector, within = document) {
  const element = within.querySelector(selector);
  if (!element) throw new Error(`there is no ${selector} on this page`);
  return element;
}

export function all(selector, within = document) {
  return [...within.querySelectorAll(selector)];
}

/** Change a text only where it differs, so that screen readers and selections are left in peace. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (name === "dataset") {
      Object.assign(element.dataset, value);
    } else {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...nodes(children));
  return element;
}

function nodes(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : String(child)));
}
