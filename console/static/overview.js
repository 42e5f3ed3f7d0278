import { api } from './api.js'
import { lines, shares } from './chart.js'
import { fill, h } from './dom.js'
import { age, number, t } from './i18n.js'
import { repeat } from './poll.js'
import { change, level, nodes, rate, sample } from './samples.js'

const OPEN = ['accepted', 'processing', 'needs_reconciliation']
const SETTLED = ['succeeded', 'failed', 'abandoned']
const STATES = ['accepted', 'processing', 'succeeded', 'failed', 'needs_reconciliation', 'abandoned']
const EVERY = 5000

/** @param {HTMLElement} main @param {import('./app.js').Context} context */
export async function overview(main, context) {
  const all = (context.who.accounts || []).includes('*') // counts are over all accounts
  const cards = h('section', { class: 'cards', 'aria-label': t('unreconciled') })
  const states = h('section', { class: 'panel', 'aria-label': t('statesNow') })
  const charts = h('section', { class: 'panel', 'aria-label': t('overTime') })
  /** @type {any[]} */
  let samples = []
  const draw = async () => {
    if (!all) return drawWaiting(cards, await waiting())
    const asked = api.stats()
    const [stats, sampled] = await Promise.all([asked, sample(asked).catch(() => samples)])
    samples = sampled
    drawStates(cards, states, stats)
    drawCharts(charts, samples)
  }
  await draw()
  if (context.signal.aborted) return
  fill(main, h('h1', {}, t('overview')), cards, all ? [states, charts] : h('p', { class: 'quiet' }, t('onlyAll')))
  addEventListener('resize', () => { if (all) drawCharts(charts, samples) }, { signal: context.signal }) // charts are as wide as the page
  repeat(draw, EVERY, context)
}

/** What needs a verdict in the accounts that this operator sees, as far as one page tells. */
async function waiting() {
  const page = await api.list({ state: 'needs_reconciliation', unacknowledged: 'true', page_size: '1000' })
  const oldest = page.operations.at(-1)
  return { count: page.operations.length, more: !!page.next_page_token, oldest: oldest ? Date.now() - Date.parse(oldest.created_at) : 0 }
}

/** @param {HTMLElement} cards @param {{count: number, more: boolean, oldest: number}} found */
function drawWaiting(cards, { count, more, oldest }) {
  const beyond = more ? ` ${t('moreOrLess')}` : ''
  fill(cards, card('queue', t('unreconciled'), number(count) + beyond, count ? `${t('oldest')} ${age(oldest)}${beyond}` : '', count > 0))
}

/** @param {HTMLElement} cards @param {HTMLElement} states @param {any} stats */
function drawStates(cards, states, stats) {
  const total = (/** @type {(k: any) => number} */ of) => stats.kinds.reduce((/** @type {number} */ n, /** @type {any} */ k) => n + of(k), 0)
  const oldest = (/** @type {(k: any) => number} */ of) => Math.max(0, ...stats.kinds.map(of)) / 1e6
  const unreconciled = total(k => k.unreconciled)
  fill(cards,
    card('queue', t('unreconciled'), number(unreconciled), unreconciled ? `${t('oldest')} ${age(oldest(k => k.oldest_unreconciled_ns))}` : '', unreconciled > 0),
    card('', t('queueAge'), age(oldest(k => k.oldest_due_ns)), '', oldest(k => k.oldest_due_ns) > 300000),
    card('', t('contradictions'), number(total(k => k.contradicted)), '', total(k => k.contradicted) > 0))
  fill(states, stats.kinds.length === 0 && h('p', { class: 'quiet' }, t('nothing')), stats.kinds.map((/** @type {any} */ k) =>
    shares(STATES.map(s => ({ name: t(s), color: s, value: k.states[s] || 0 })), `${t('statesNow')}: ${k.kind}`, number)))
}

/** @param {string} to @param {string} name @param {string} value @param {string} more @param {boolean} warn */
function card(to, name, value, more, warn) {
  const content = [h('span', { class: 'label' }, name), h('b', {}, value), h('span', { class: 'quiet' }, more)]
  return to ? h('a', { class: `card ${warn ? 'warn' : ''}`, href: `#/${to}` }, content) : h('div', { class: `card ${warn ? 'warn' : ''}` }, content)
}

/** @param {HTMLElement} charts @param {any[]} samples */
function drawCharts(charts, samples) {
  if (samples.length < 3) return fill(charts, h('p', { class: 'quiet wait' }, t('ratesSoon')))
  const inStates = (/** @type {string[]} */ names, /** @type {typeof level} */ of) => names.map(s => ({ name: t(s), color: s, points: of(samples, s) }))
  const rates = RATES.map(([name, word, color]) => ({ name: t(word), color, points: rate(samples, name) }))
  const many = nodes(samples)
  fill(charts,
    lines([...inStates(OPEN, level), { name: t('unreconciled'), color: 'c3', points: samples.map(s => ({ at: s.at, value: s.unreconciled })) }], t('openOverTime')),
    lines(inStates(SETTLED, change), t('settledOverTime')),
    rates[0].points.length > 0 && lines(rates, t('rates')), // a node has to answer twice
    h('p', { class: 'quiet' }, t('countsHelp')),
    h('p', { class: 'quiet' }, t('ratesHelp'), many > 1 && ` ${t('manyNodes')} ${number(many)}`),
    h('p', { class: 'quiet' }, h('b', {}, t('unconfirmedTitle')), ` ${t('unconfirmedHelp')}`))
}

/** Counters, their words and their colours. @type {[Parameters<typeof rate>[1], string, string][]} */
const RATES = [['accepts', 'accepts', 'c1'], ['replays', 'replays', 'c2'], ['retries', 'retries', 'c3'], ['lost', 'lost', 'c4'], ['unknown', 'unknownRate', 'c5']]
