/**
 * Elements, made and changed without surprises: nothing is written that is there already, so
 * that screen readers do not say it twice.
 *
 * @module
 */

const SVG = 'http://www.w3.org/2000/svg'

/**
 * Makes an element. Members that begin with "on" are listeners, null and false are left out,
 * all others are attributes.
 *
 * @param {string} tag "svg:…" is of SVG
 * @param {Record<string, any>} [attributes]
 * @param {...(Node|string|null|undefined|false)} children
 * @returns {any}
 */
export function h(tag, attributes = {}, ...children) {
  const element = tag.startsWith('svg:') ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value)
    else set(element, name, value)
  }
  element.append(...children.filter(child => child !== null && child !== undefined && child !== false))
  return element
}

/** Sets an attribute, or removes it where the value is null or false. @param {Element} element @param {string} name @param {any} value */
export function set(element, name, value) {
  if (value === null || value === undefined || value === false) element.removeAttribute(name)
  else if (element.getAttribute(name) !== `${value === true ? '' : value}`) element.setAttribute(name, value === true ? '' : `${value}`)
}

/** @param {Element} element @param {string|undefined} text */
export function write(element, text = '') {
  if (element.textContent !== text) element.textContent = text
}

/** @param {string} id @returns {any} */
export const at = id => document.getElementById(id)

/** The time of day, in the language of the page. @param {number|string} when @param {string} lang */
export const clock = (when, lang) => new Intl.DateTimeFormat(lang == 'zh' ? 'zh-CN' : 'en-GB',
  { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false }).format(new Date(when))

/** @param {number|string} when @param {string} lang */
export const day = (when, lang) => new Intl.DateTimeFormat(lang == 'zh' ? 'zh-CN' : 'en-GB',
  { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', hour12: false }).format(new Date(when))
