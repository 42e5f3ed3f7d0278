/**
 * Three counts that must agree, and what it means when they do not (yet).
 *
 * @module
 */

import { h, set, write } from './dom.js'
import { t } from './lang.js'

/**
 * @typedef {object} Counted
 * @property {number} seen tasks on this page
 * @property {boolean} more there are older ones
 * @property {{operations: number, all_operations: number, executions: number}} [server] the last answer
 * @property {boolean} stale the last question had no answer
 * @property {Record<string, number>} phases tasks on this page, by phase
 */

/** @param {Counted} c @returns {[import('./words.js').Word, 'good'|'calm'|'doubt', Record<string, any>?]} */
export function verdict({ seen, more, server, stale, phases }) {
  const open = (phases.accepted ?? 0) + (phases.processing ?? 0)
  if (!server || stale) return ['vStale', 'calm']
  const { operations, all_operations: all, executions } = server
  if (open) return ['vOpen', 'calm']
  if (phases.sending || phases.unconfirmed) return ['vLocal', 'doubt']
  if (executions > all) return ['vMoreRuns', 'doubt']
  if (more || seen < operations) return ['vPart', 'calm', { n: seen }]
  if (seen > operations) return [phases.expired ? 'vOlder' : 'vLocal', 'doubt']
  const agree = seen == operations && all == executions
  if (phases.needs_reconciliation) return [agree ? 'vEqualDoubt' : 'vDoubt', 'doubt']
  if (!agree) return ['vUnrun', 'calm']
  return seen ? ['vEqual', 'good'] : ['vNone', 'calm']
}

/** @param {HTMLElement} body */
export function createCounts(body) {
  const row = (/** @type {string} */ name) => {
    const number = h('b', { class: 'number', id: `count-${name}` }, '–')
    const label = h('span', { class: 'label' })
    const sub = h('span', { class: 'sub' })
    const sign = h('span', { class: 'sign', 'aria-hidden': 'true' })
    return { number, label, sub, sign, item: h('li', { class: 'count' }, sign, label, ' ', number, ' ', sub) }
  }
  const rows = { seen: row('seen'), operations: row('operations'), runs: row('runs') }
  const says = h('p', { class: 'verdict', id: 'verdict' })
  body.append(h('ul', { class: 'ledger' }, rows.seen.item, rows.operations.item, rows.runs.item), says)

  return {
    /** @param {Counted} counted */
    draw(counted) {
      const { seen, server } = counted
      const others = !!server && server.all_operations > server.operations
      write(rows.seen.label, t('countSeen'))
      write(rows.seen.sub, t('countSeenSub'))
      write(rows.operations.label, t('countOperations'))
      write(rows.operations.sub, others ? t('countOthers', { n: server.all_operations }) : t('countOperationsSub'))
      write(rows.runs.label, t('countRuns'))
      write(rows.runs.sub, t(others ? 'countRunsAll' : 'countRunsSub'))
      put(rows.seen.number, `${seen}`)
      put(rows.operations.number, server ? `${server.operations}` : '–')
      put(rows.runs.number, server ? `${server.executions}` : '–')
      compare(rows.operations.sign, server && seen == server.operations)
      // What the generator ran for others can't be told apart, so there is nothing to compare.
      compare(rows.runs.sign, server && !others ? server.all_operations == server.executions : undefined)
      const [word, tone, values] = verdict(counted)
      write(says, t(word, values))
      set(says, 'data-tone', tone)
      set(body, 'data-stale', counted.stale)
    },
  }

  /** @param {HTMLElement} sign @param {boolean|undefined} equal */
  function compare(sign, equal) {
    write(sign, equal === undefined ? '' : equal ? '=' : '≠')
    set(sign, 'data-equal', `${equal ?? ''}`)
  }

  /** @param {HTMLElement} number @param {string} text */
  function put(number, text) {
    if (number.textContent == text) return
    const first = number.textContent == '–'
    write(number, text)
    if (first) return
    // The animation begins anew only where the class was gone for a moment.
    number.classList.remove('changed')
    requestAnimationFrame(() => number.classList.add('changed'))
  }
}
