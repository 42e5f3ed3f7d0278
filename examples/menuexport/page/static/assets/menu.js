/**
 * The menu: what it may hold, what is wrong with it, whether two are the same. Pure.
 *
 * What a person types is a Form; what is sent is a Menu. The limits are those of the kind's
 * schema (`/v1/kinds/menu-export`), counted as it counts: in code points.
 *
 * @module
 */

/**
 * @typedef {object} Form
 * @property {string} title
 * @property {{day: string, dishes: string}[]} days `dishes` holds one per line
 * @property {'light'|'dark'} theme
 * @property {string} width
 *
 * @typedef {object} Menu
 * @property {string} title
 * @property {{day: string, dishes: string[]}[]} days
 * @property {'light'|'dark'} theme
 * @property {number} width
 *
 * @typedef {object} Fault
 * @property {string} field `title`, `width`, `day.0`, `dishes.0`
 * @property {import('./words.js').Word} word
 * @property {Record<string, number>} [values]
 */

export const LIMITS = { title: 120, days: 7, day: 60, dishes: 20, dish: 60, least: 320, most: 2400 }

/** Nothing but spaces, controls and marks without a shape of their own. */
const UNSEEN = /^[\p{Cc}\p{Cf}\p{Z}\s\u{fe00}-\u{fe0f}\u{1f3fb}-\u{1f3ff}\u{e0100}-\u{e01ef}]*$/u

/** @param {string} text */
const length = text => [...text].length

/** What can travel as JSON: half a character can't. @param {string} text */
const whole = text => text.trim().replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, '\ufffd')

/** @param {string} text */
export const lines = text => text.split(/\r\n|\r|\n|\u2028|\u2029/).map(whole)

/**
 * Makes the menu of a form, and says what is wrong with it.
 *
 * @param {Form} form @returns {{menu: Menu, faults: Fault[]}}
 */
export function read(form) {
  /** @type {Fault[]} */
  const faults = []
  /** @param {string} field @param {string} text @param {number} most */
  const text = (field, text, most) => {
    const value = whole(text)
    if (!value) faults.push({ field, word: 'needText' })
    else if (length(value) > most) faults.push({ field, word: 'tooLong', values: { n: length(value), most } })
    else if (UNSEEN.test(value)) faults.push({ field, word: 'needSeen' })
    return value
  }
  const menu = {
    title: text('title', form.title, LIMITS.title),
    days: form.days.map((day, i) => ({ day: text(`day.${i}`, day.day, LIMITS.day), dishes: dishes(`dishes.${i}`, day.dishes, faults) })),
    theme: form.theme,
    width: Number(form.width.trim()),
  }
  if (!/^\d{1,6}$/.test(form.width.trim()) || menu.width < LIMITS.least || menu.width > LIMITS.most) {
    faults.push({ field: 'width', word: 'badWidth', values: { least: LIMITS.least, most: LIMITS.most } })
  }
  return { menu, faults }
}

/** @param {string} field @param {string} text @param {Fault[]} faults */
function dishes(field, text, faults) {
  const all = lines(text)
  const written = all.filter(Boolean)
  const long = all.findIndex(line => length(line) > LIMITS.dish)
  const unseen = all.findIndex(line => line && UNSEEN.test(line))
  if (!written.length) faults.push({ field, word: 'needDishes' })
  else if (written.length > LIMITS.dishes) faults.push({ field, word: 'tooManyDishes', values: { n: written.length, most: LIMITS.dishes } })
  else if (long >= 0) faults.push({ field, word: 'dishTooLong', values: { line: long + 1, n: length(all[long]), most: LIMITS.dish } })
  else if (unseen >= 0) faults.push({ field, word: 'dishUnseen', values: { line: unseen + 1 } })
  return written
}

/** The form of a menu. @param {any} menu @returns {Form} */
export const formOf = menu => ({
  title: menu.title,
  days: menu.days.map((/** @type {any} */ day) => ({ day: day.day, dishes: day.dishes.join('\n') })),
  theme: menu.theme == 'dark' ? 'dark' : 'light',
  width: `${menu.width ?? 800}`,
})

/** Is it a menu that formOf can show? @param {any} menu */
export const isMenu = menu => typeof menu?.title == 'string' && Array.isArray(menu.days) &&
  menu.days.every((/** @type {any} */ day) => typeof day?.day == 'string' && Array.isArray(day.dishes))

/** One text for all menus that are the same. @param {Menu} menu */
export const same = menu => JSON.stringify([menu.title, menu.days.map(day => [day.day, day.dishes]), menu.theme ?? 'light', menu.width ?? 800])

/** The form to begin with. @param {string} title @param {string[][]} days @returns {Form} */
export const example = (title, days) => ({ title, days: days.map(([day, dishes]) => ({ day, dishes })), theme: 'light', width: '800' })
