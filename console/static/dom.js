// Elements are made from text only: nothing that a server says becomes markup.

const SVG = 'http://www.w3.org/2000/svg'

/**
 * Makes an element. Attributes that are functions are listeners; false, null and
 * undefined ones are left out.
 * @param {string} tag "div", or "svg:path"
 * @param {Record<string, any>} [attributes]
 * @param {...any} children nodes, texts and lists of them; what is null or false is left out
 * @returns {any}
 */
export function h(tag, attributes = {}, ...children) {
  const node = tag.startsWith('svg:') ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') node.addEventListener(name, value)
    else if (name === 'value' && 'value' in node) node.value = value
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value === true ? '' : String(value))
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) node.append(/** @type {any} */ (child))
  }
  return node
}

// What turns the direction of the text around it, or can't be seen at all.
const hidden = /[\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g

/** A JSON value as text, in which nothing is hidden. @param {any} value */
export function json(value) {
  const text = JSON.stringify(value, null, 2).replace(hidden, c => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return h('pre', { tabindex: 0, dir: 'ltr' }, h('code', {}, text))
}

/** Puts children in the place of what is there. @param {Element} node @param {...any} children */
export function fill(node, ...children) {
  node.replaceChildren(...children.flat().filter(Boolean))
}
