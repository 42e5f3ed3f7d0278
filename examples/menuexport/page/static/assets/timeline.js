/**
 * Draws a trail: four lanes, one line per step, an arrow from who spoke to who was spoken to.
 *
 * @module
 */

import { h, write } from './dom.js'
import { lang, t } from './lang.js'

/** @import {Step, Lane} from './trail.js' */

/** @type {Lane[]} */
const LANES = ['page', 'database', 'worker', 'generator']
/** @type {Record<Lane, import('./words.js').Word>} */
const NAMES = { page: 'lanePage', database: 'laneDatabase', worker: 'laneWorker', generator: 'laneGenerator' }
const X = { page: 14, database: 42, worker: 70, generator: 98 }
const Y = 13

/** @typedef {import('./words.js').Word} Word */

/** The way of a task that meets no trouble. @type {Step[]} */
const USUAL = [
  { at: 0, from: 'page', to: 'database', form: 'move', word: 'eSent' },
  { at: 0, from: 'database', form: 'deed', word: 'eCommitted', once: true },
  { at: 0, from: 'database', to: 'page', form: 'move', word: 'eAnswered' },
  { at: 0, from: 'database', to: 'worker', form: 'move', word: 'eClaimed' },
  { at: 0, from: 'worker', to: 'generator', form: 'move', word: 'eCalled' },
  { at: 0, from: 'generator', form: 'deed', word: 'eExecuted', once: true },
  { at: 0, from: 'generator', to: 'worker', form: 'move', word: 'eReturned' },
  { at: 0, from: 'worker', to: 'database', form: 'move', word: 'eWritten' },
  { at: 0, from: 'database', to: 'page', form: 'move', word: 'eShown' },
]
/** Other ways to the same place. @type {Partial<Record<Word, Word>>} */
const INSTEAD = { eLost: 'eAnswered', eNoAnswer: 'eAnswered', eReplayed: 'eReturned', eThere: 'eReturned' }

/** What a generator promises, by the name of its contract; others have names of their own. @type {Map<string, Word>} */
const PROMISES = new Map([['idempotent', 'promiseIdempotent'], ['queryable', 'promiseQueryable'], ['opaque', 'promiseOpaque']])

/** What a person finds out, where nobody knows. @type {Step} */
const VERDICT = { at: 0, from: 'database', form: 'deed', word: 'eVerdict' }

/** What is still to come, if there is no more trouble. @param {Step[]} trail */
function ahead(trail) {
  const found = trail.findLastIndex(({ word }) => word == 'eVerdict')
  if (trail[found]?.text == 'eAcknowledged') return []
  const since = trail.slice(found + 1)
  if (since.some(({ word }) => word == 'eDecided')) return [VERDICT, ...USUAL.slice(-1)]
  // After "it did not happen" it is claimed anew.
  const before = found < 0 ? -1 : USUAL.findIndex(({ word }) => word == 'eAnswered')
  const last = Math.max(before, ...since.map(({ word }) => USUAL.findIndex(step => step.word == (INSTEAD[word] ?? word))))
  return USUAL.slice(last + 1)
}

/** @param {Step} step */
function picture({ from, to, form, once }) {
  const marks = []
  const a = X[from]
  if (to && form == 'move') {
    const way = Math.sign(X[to] - a)
    const b = X[to] - way * 4
    marks.push(h('svg:path', { class: 'line', d: `M${a} ${Y}H${b}` }), h('svg:path', { class: 'head', d: `M${b - way * 6} ${Y - 4}L${b + way} ${Y}L${b - way * 6} ${Y + 4}` }))
    marks.push(h('svg:circle', { class: 'start', cx: a, cy: Y, r: 3 }))
  } else if (to) {
    const b = a + (X[to] - a) * 0.62
    marks.push(h('svg:path', { class: 'line lost', d: `M${a} ${Y}H${b}` }), cross(b, 4.5), h('svg:circle', { class: 'start', cx: a, cy: Y, r: 3 }))
  } else if (form == 'end') marks.push(cross(a, 6))
  else if (form == 'wait') marks.push(h('svg:circle', { class: 'waiting', cx: a, cy: Y, r: 4.5 }))
  else {
    marks.push(h('svg:circle', { class: once ? 'deed once' : 'deed', cx: a, cy: Y, r: once ? 8 : 4.5 }))
    if (once) marks.push(h('svg:path', { class: 'one', d: `M${a - 3.2} ${Y}H${a + 3.2}` }))
  }
  return h('svg:svg', { class: 'marks', viewBox: '0 0 112 26', preserveAspectRatio: 'xMidYMin', 'aria-hidden': 'true', focusable: 'false' }, ...marks)
}

/** @param {number} x @param {number} r */
const cross = (x, r) => h('svg:path', { class: 'cross', d: `M${x - r} ${Y - r}L${x + r} ${Y + r}M${x + r} ${Y - r}L${x - r} ${Y + r}` })

/** Since the first step. @param {number} ms */
function since(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`
  const digits = ms < 100_000 ? 2 : 0
  const [unit, sign] = /** @type {[number, string][]} */ ([[864e5, 'd'], [36e5, 'h'], [1000, 's']]).find(([unit]) => ms >= 2 * unit) ?? [1000, 's']
  return `${new Intl.NumberFormat(lang == 'zh' ? 'zh-CN' : 'en', { minimumFractionDigits: digits, maximumFractionDigits: digits }).format(ms / unit)} ${sign}`
}

/** @param {HTMLElement} body */
export function createTimeline(body) {
  const legend = h('ul', { class: 'legend' })
  const about = h('p', { class: 'quiet' })
  const steps = h('ol', { class: 'steps' })
  const promise = h('p', { class: 'promise' })
  body.append(about, legend, steps, promise)
  let drawn = ''

  return {
    /** @param {Step[]} trail @param {string} [contract] what the generator promises @param {boolean} [open] there is more to come */
    draw(trail, contract, open) {
      const key = JSON.stringify([lang, trail, contract, open])
      if (key == drawn) return
      drawn = key
      legend.setAttribute('aria-label', t('lanes'))
      legend.replaceChildren(...LANES.map(lane => h('li', { class: lane }, h('span', {}, t(NAMES[lane])))))
      write(about, t('trailAbout'))
      const start = trail[0]?.at ?? 0
      steps.replaceChildren(...trail.map(step => line(step, start)), ...(open ? ahead(trail).map(ghost) : []))
      const word = PROMISES.get(contract ?? '')
      promise.hidden = !word
      if (word) promise.replaceChildren(h('b', {}, t('promise')), ' ', t(word))
    },
  }

  /** A step that has not happened. @param {Step} step */
  function ghost(step) {
    return h('li', { class: `step ghost ${step.from}`, 'aria-hidden': 'true' }, h('span', { class: 'since' }), picture(step), h('p', {}, t(step.word)))
  }

  /** @param {Step} step @param {number} start */
  function line(step, start) {
    const who = step.to ? t('fromTo', { from: t(NAMES[step.from]), to: t(NAMES[step.to]) }) : t(NAMES[step.from])
    return h('li', { class: `step ${step.from} ${step.form}`, 'data-step': step.word },
      h('span', { class: 'since' }, since(step.at - start)),
      picture(step),
      h('p', {},
        h('span', { class: 'unseen' }, `${who}: `),
        h('b', {}, t(step.word)), ' ',
        h('span', { class: 'about' }, step.text ? t(step.text, step.values) : ''),
        step.times ? h('span', { class: 'times' }, ` ${t('times', { n: step.times })}`) : null,
        step.said ? h('q', { dir: 'auto' }, step.said) : null))
  }
}
