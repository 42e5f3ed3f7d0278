// The console: a bar, and one view at a time, chosen by the part of the address
// behind "#".

import { api, Problem } from './api.js'
import { h, fill } from './dom.js'
import { clock, language, setLanguage, t } from './i18n.js'
import { overview } from './overview.js'
import { list } from './list.js'
import { operation } from './operation.js'
import { insist } from './poll.js'
import { queue } from './queue.js'

const bar = /** @type {HTMLElement} */ (document.getElementById('bar'))
const main = /** @type {HTMLElement} */ (document.getElementById('main'))
const live = /** @type {HTMLElement} */ (document.getElementById('say'))
const net = /** @type {HTMLElement} */ (document.getElementById('net'))

/**
 * @typedef {object} Context what a view gets
 * @property {string[]} rest the rest of the address
 * @property {AbortSignal} signal aborted when the view is left
 * @property {any} who who is signed in
 * @property {(text: string) => void} say tells people who can't see the page
 * @property {(answered: boolean) => void} heard whether the server answered just now
 * @property {(problem: unknown) => void} fail ends the view
 */

/** @type {any} */
let who = null
let showing = new AbortController()
let answeredAt = new Date().toISOString()

const say = (/** @type {string} */ text) => { live.textContent = text }

/** @param {boolean} answered */
function heard(answered) {
  if (answered) answeredAt = new Date().toISOString()
  const text = answered ? '' : `${t('noAnswer')} ${t('seenAt')} ${clock(answeredAt).slice(0, 8)}.`
  if (net.textContent !== text) net.textContent = text
}

const views = new Map(Object.entries({ overview, operations: list, operation, queue }))

function here() {
  const [name, ...rest] = location.hash.replace(/^#\/?/, '').split('/')
  try {
    return { name: views.has(name) ? name : 'overview', rest: rest.map(decodeURIComponent) }
  } catch { // somebody's link, with a percent sign that is no escape
    return { name: 'overview', rest: [] }
  }
}

function drawBar() {
  const focused = document.activeElement?.id
  document.documentElement.lang = language === 'zh' ? 'zh-CN' : 'en'
  document.title = t('title')
  const skip = /** @type {HTMLElement} */ (document.querySelector('.skip'))
  skip.textContent = t('skip')
  const { name } = here()
  const link = (/** @type {string} */ to) =>
    h('a', { href: `#/${to}`, 'aria-current': name === to && 'page', id: `nav-${to}` }, t(to))
  fill(bar,
    h('a', { class: 'brand', href: '#/overview' }, 'Semel'),
    who && h('nav', { 'aria-label': t('title') }, link('overview'), link('operations'), link('queue')),
    h('div', { class: 'me' },
      h('button', { class: 'plain', id: 'language', lang: language === 'zh' ? 'en' : 'zh-CN', click: () => { setLanguage(language === 'zh' ? 'en' : 'zh'); show() } }, t('language')),
      who && h('bdi', { class: 'name' }, who.name || ''),
      who && h('button', { class: 'plain', id: 'sign-out', click: signOut }, t('signOut'))))
  if (focused && bar.querySelector(`#${CSS.escape(focused)}`)) document.getElementById(focused)?.focus()
}

async function signOut() {
  try {
    await api.signOut()
    signedOut()
  } catch { // still signed in, for all that is known: do not say otherwise
    heard(false)
  }
}

function signedOut() {
  who = null
  show()
}

function drawSignIn() {
  const input = h('input', { id: 'token', type: 'password', autocomplete: 'off', required: true, spellcheck: 'false', 'aria-describedby': 'token-help' })
  const wrong = h('p', { class: 'wrong', role: 'alert' })
  const submit = async (/** @type {Event} */ e) => {
    e.preventDefault()
    try {
      const session = await api.signIn(input.value.trim())
      if (!session.operator) {
        await api.signOut()
        wrong.textContent = t('notOperator')
        return
      }
      who = session
      heard(true)
      show()
    } catch (problem) {
      wrong.textContent = problem instanceof Problem && problem.status === 401 ? t('badToken') : t('noSignIn')
    }
  }
  fill(main, h('form', { class: 'sign-in', submit },
    h('h1', {}, t('signIn')),
    h('label', { for: 'token' }, t('token')), input,
    h('p', { id: 'token-help', class: 'quiet' }, t('signInHelp')), wrong,
    h('button', { class: 'main' }, t('signIn'))))
  input.focus()
}

/** Draws the view of the address. */
async function show() {
  showing.abort()
  showing = new AbortController()
  const { signal } = showing
  drawBar()
  if (!who) return drawSignIn()
  const fail = (/** @type {unknown} */ problem) => {
    if (signal.aborted) return
    showing.abort()
    if (problem instanceof Problem && problem.status === 401) return signedOut()
    fill(main, h('h1', {}, t(here().name)), h('p', { class: 'wrong', role: 'alert' }, h('bdi', {}, problem instanceof Problem ? problem.message : String(problem))))
  }
  const { name, rest } = here()
  const view = views.get(name) || overview
  try {
    await insist(() => view(main, { rest, signal, who, say, heard, fail }), { signal, heard })
  } catch (problem) {
    fail(problem)
    if (!(problem instanceof Problem)) throw problem
  }
}

addEventListener('hashchange', async () => {
  await show()
  if (!main.contains(document.activeElement)) main.focus({ preventScroll: true }) // a view may know a better place
})

drawBar()
try {
  const session = await insist(api.session, { signal: showing.signal, heard })
  who = session.operator ? session : null
} catch {
  who = null
}
show()
