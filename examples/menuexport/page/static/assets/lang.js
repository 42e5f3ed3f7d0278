/**
 * The language of the page: the one chosen here before, else the browser's. It is set before
 * the first paint, so this module imports words and nothing else.
 *
 * @module
 */

import { words } from './words.js'

const KEPT = 'semel-language'
const listeners = new Set()

/** @returns {'en'|'zh'} */
function first() {
  let kept
  try {
    kept = localStorage.getItem(KEPT)
  } catch {
    // A browser that keeps nothing has a language all the same.
  }
  if (kept == 'en' || kept == 'zh') return kept
  for (const tag of navigator.languages ?? [navigator.language]) {
    if (/^zh\b/i.test(tag)) return 'zh'
    if (/^en\b/i.test(tag)) return 'en'
  }
  return 'en'
}

/** The language now. @type {'en'|'zh'} */
export let lang = first()

/**
 * A text in the language of the page.
 *
 * @param {import('./words.js').Word} word @param {Record<string, any>} [values] for what is in {braces}
 * @returns {string}
 */
export function t(word, values = {}) {
  return /** @type {any} */ (words[lang])[word].replace(/\{(\w+)\}/g, (/** @type {string} */ _, /** @type {string} */ name) => values[name] ?? '')
}

/** A list in the language of the page. @param {'newDay'|'example'} word @returns {any} */
export const list = word => words[lang][word]

/** Calls back at every change of language. @param {() => void} listener */
export const onLanguage = listener => listeners.add(listener)

/** @param {string} selector */
const all = selector => /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(selector))

function apply() {
  const root = document.documentElement
  root.lang = lang == 'zh' ? 'zh-CN' : 'en'
  document.title = t('title')
  for (const element of all('[data-t]')) element.textContent = t(/** @type {any} */ (element.dataset.t))
  for (const element of all('[data-t-label]')) element.setAttribute('aria-label', t(/** @type {any} */ (element.dataset.tLabel)))
  for (const button of all('[data-lang]')) {
    button.setAttribute('aria-pressed', `${button.dataset.lang == lang}`)
  }
}

/** @param {'en'|'zh'} next */
function choose(next) {
  if (next == lang) return
  lang = next
  try {
    localStorage.setItem(KEPT, lang)
  } catch {
    // It is not remembered, then.
  }
  apply()
  for (const listener of listeners) listener()
}

apply()
for (const button of all('[data-lang]')) {
  button.addEventListener('click', () => choose(button.dataset.lang == 'zh' ? 'zh' : 'en'))
}
// Another tab's choice holds here too.
addEventListener('storage', event => {
  if (event.key == KEPT && (event.newValue == 'en' || event.newValue == 'zh')) choose(event.newValue)
})
