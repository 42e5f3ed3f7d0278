import { api, pathOf } from './api.js'
import { fill, h } from './dom.js'
import { number, t } from './i18n.js'
import { detail } from './operation.js'
import { insist, repeat } from './poll.js'

const PAGE = '1000'
const MOST = 10000
const EVERY = 5000

/** @typedef {{key: any, revision: number, gone?: boolean}} Waiting one that waits; gone, when somebody else has decided it while it is looked at */

/** All that waits for a verdict, the oldest first. @returns {Promise<Waiting[]>} */
async function allWaiting() {
  const waiting = []
  let token = ''
  do {
    const page = await api.list({ state: 'needs_reconciliation', unacknowledged: 'true', page_size: PAGE, page_token: token })
    waiting.push(...page.operations.map((/** @type {any} */ op) => ({ key: op.key, revision: op.revision })))
    token = page.next_page_token || ''
  } while (token && waiting.length < MOST)
  return waiting.reverse()
}

/**
 * The reconciliation queue: one at a time, by keyboard. What is decided leaves it,
 * and what comes is counted, while the one that is looked at stays as it is.
 * @param {HTMLElement} main
 * @param {import('./app.js').Context} context
 */
export async function queue(main, context) {
  const { signal, say, fail } = context
  let waiting = await allWaiting()
  let at = 0
  let turn = 0
  let revision = 0 // of what is drawn
  let open = false // whether that waits for a verdict
  const place = h('p', { id: 'place' })
  const moves = h('div', {}, h('button', { id: 'previous', click: () => move(-1) }, t('previous')), ' ', h('button', { id: 'next', click: () => move(1) }, t('next')))
  const news = h('p', { id: 'news', class: 'quiet' })
  const body = h('article', { class: 'operation' })

  /** Says where one is, and what became of what one looks at. @param {string} changed */
  const drawHead = (changed = '') => {
    const text = waiting.length ? `${number(at + 1)} ${t('of')} ${number(waiting.length)}` : t('queueEmpty')
    if (place.textContent !== text) place.textContent = text
    moves.hidden = !waiting.length || waiting.length < 2 && !waiting[at].gone && !moves.contains(document.activeElement)
    const was = news.firstChild?.textContent || ''
    if (was !== changed) fill(news, changed && [h('span', {}, changed), ' ', h('button', { class: 'plain', id: 'look-again', click: lookAgain }, t('lookAgain'))])
    return was !== changed && changed
  }
  const draw = async (/** @type {string} */ notice = '') => {
    const mine = ++turn
    at = Math.max(0, Math.min(at, waiting.length - 1))
    drawHead()
    if (!waiting.length) return fill(body)
    const op = await api.get(waiting[at].key)
    if (signal.aborted || mine !== turn) return
    revision = op.revision
    open = op.state === 'needs_reconciliation' && !op.acknowledged
    if (!open) waiting[at].gone = true
    drawHead()
    await detail(body, op, { ...context, stale: () => mine !== turn, notice, done: () => decided(op.key), changed: () => draw(t('stale')) })
  }
  const again = (/** @type {string} */ notice = '') => insist(() => draw(notice), context).catch(fail)
  const decided = async (/** @type {any} */ key) => {
    waiting = waiting.filter(w => pathOf(w.key) !== pathOf(key))
    if (!waiting.length) waiting = await allWaiting() // somebody may have come since
    await again()
    main.focus()
    say(`${t('recorded')} ${place.textContent}`)
  }
  const move = (/** @type {number} */ by) => {
    const focused = document.activeElement?.id || ''
    if (waiting[at]?.gone) {
      waiting.splice(at, 1)
      if (by > 0) by = 0 // the next one is in its place
    }
    at = (at + by + waiting.length) % (waiting.length || 1)
    again().then(() => {
      if (focused === 'next' || focused === 'previous') focus(focused)
      say(place.textContent)
    })
  }
  /** @param {string} id */
  const focus = id => {
    const button = document.getElementById(id)
    if (button && !moves.hidden) button.focus()
    else main.focus()
  }
  const lookAgain = () => again().then(() => { main.focus(); say(place.textContent) })

  /** Looks who has come and who has gone, without touching what is looked at. */
  const refresh = async () => {
    const began = turn
    const now = await allWaiting()
    const recording = /** @type {HTMLButtonElement|null} */ (body.querySelector('#record'))?.disabled
    if (signal.aborted || began !== turn || recording) return // what was asked for is no longer true
    const current = waiting[at]
    const known = new Set(waiting.map(w => pathOf(w.key)))
    const come = now.filter(w => !known.has(pathOf(w.key))).length
    waiting = now
    if (!current) {
      if (come) await draw()
    } else {
      const here = now.findIndex(w => pathOf(w.key) === pathOf(current.key))
      at = here >= 0 ? here : Math.min(at, now.length)
      if (here < 0) now.splice(at, 0, { ...current, gone: true })
    }
    const changed = current && drawHead(!open ? '' : waiting[at].gone ? t('decidedElsewhere') : waiting[at].revision > revision ? t('stale') : '')
    if (come || changed) say([changed, come && `${number(come)} ${t('arrived')}`, place.textContent].filter(Boolean).join(' '))
  }
  await draw()
  if (signal.aborted) return
  fill(main, h('h1', {}, t('queue')), h('p', { class: 'quiet keys' }, t('keys')), h('div', { class: 'queue-head' }, place, moves), news, body)
  repeat(refresh, EVERY, context)
  document.addEventListener('keydown', e => {
    const typing = e.target instanceof HTMLTextAreaElement || e.target instanceof HTMLInputElement && e.target.type !== 'radio'
    if (typing || e.ctrlKey || e.metaKey || e.altKey || !waiting.length) return
    const press = new Map(Object.entries({
      j: () => move(1), k: () => move(-1),
      e: () => { document.getElementById('evidence')?.focus(); e.preventDefault() },
    })).get(e.key)
    if (press) press()
    else if (/^[1-4]$/.test(e.key)) document.getElementById(`verdict-${e.key}`)?.click()
  }, { signal })
}
