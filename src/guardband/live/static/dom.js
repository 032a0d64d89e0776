// Making elements. Text goes in as text, never as markup: names come from users.

const SVG = "http://www.w3.org/2000/svg";

function made(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((c) => c !== null && c !== undefined));
  return node;
}

export const h = (tag, attributes, ...children) =>
  made(document.createElement(tag), attributes, children);

export const svg = (tag, attributes, ...children) =>
  made(document.createElementNS(SVG, tag), attributes, children);

export const byId = (id) => document.getElementById(id);

/** Replace what is in a node; the focused element keeps the focus if it has a data-key. */
export function fill(node, ...children) {
  const key = node.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  node.replaceChildren(...children.flat().filter((c) => c !== null && c !== undefined));
  if (key) node.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

/** The length of one rem in pixels: drawings grow with the type. */
export const rem = () => parseFloat(getComputedStyle(document.documentElement).fontSize);

export const colour = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** One of eight colours for the i-th agent; further agents take them again. */
export const agentClass = (i) => `agent-${i % 8}`;
export const agentColour = (i) => colour(`--agent-${i % 8}`);
