// What can still be proven of an operation: by its state, its executions, and the
// contract that they began under. What that contract says, the interface tells with
// each execution; here is no rule of it.

import { h } from './dom.js'
import { age, t, when } from './i18n.js'

/** @param {any} op @param {any} history @returns {any} a section */
export function proof(op, history) {
  const said = sentences(op, history)
  const key = externalKey(history)
  return h('section', { class: 'panel', id: 'proof' }, h('h2', {}, t('provable')),
    said.map(s => h('p', {}, s)),
    key && h('p', {}, `${t('externalKey')} `, h('code', { class: 'id' }, h('bdi', {}, key))),
    !byPerson(op, history) && lastWord(history))
}

/** @param {any} op @param {any} history @returns {string[]} */
function sentences(op, history) {
  const contradicted = op.contradicted ? [t('p_contradicted')] : []
  switch (op.state) {
    case 'accepted': return [t('p_nothing')]
    case 'abandoned': return [t('p_abandoned'), ...contradicted]
    case 'succeeded':
    case 'failed': return [t(byPerson(op, history) ? 'p_person' : 'p_settled'), ...contradicted]
    case 'needs_reconciliation': return [t(op.acknowledged ? 'p_acknowledged' : 'p_reconcile'), ...promised(history), ...contradicted]
  }
  return doubtful(history).length ? [t('p_maybe'), ...promised(history)] : [t('p_nothing')]
}

/** Executions that may have had an effect which nothing has cleared up since. @param {any} history */
function doubtful(history) {
  const cleared = Math.max(0,
    ...history.verdicts.filter((/** @type {any} */ v) => v.verdict === 'not_applied').map((/** @type {any} */ v) => v.token),
    ...history.executions.filter((/** @type {any} */ x) => x.outcome === 'not_applied' && ['earlier', 'key'].includes(x.evidence?.proof?.reach)).map((/** @type {any} */ x) => x.token))
  return history.executions.filter((/** @type {any} */ x) => x.token > cleared && x.begun_at && (!x.outcome || x.outcome === 'unknown'))
}

/**
 * What the contract lets one find out about what is in doubt. The first doubtful
 * execution's contract rules those after it too, as it does for the worker. A time is
 * only told: by the browser's clock nothing is judged to be safe.
 * @param {any} history
 * @returns {string[]}
 */
function promised(history) {
  const first = doubtful(history)[0]
  const promise = first?.promise
  if (!promise) return []
  const shape = promise.shape.split('+')
  const said = []
  if (promise.keeps_for_ever) said.push(t('p_repeatAlways'))
  else if (shape.includes('idempotent')) {
    const until = Date.parse(first.begun_at) + 1000 * (promise.keeps_seconds || 0)
    said.push(`${t('p_repeatUntil')} ${when(new Date(until).toISOString())}${t('p_repeatAfter')}`)
  }
  if (shape.includes('queryable')) {
    said.push(promise.absent_after_seconds ? `${t('p_lookUpAbsent')} ${age(1000 * promise.absent_after_seconds)}${t('stop')}` : t('p_lookUp'))
  }
  return said.length ? said : [t('p_opaque')]
}

/** Whether a verdict settled it, and no execution after it. @param {any} op @param {any} history */
function byPerson(op, history) {
  const verdict = history.verdicts[history.verdicts.length - 1]
  return ['succeeded', 'failed'].includes(op.state) && verdict && (verdict.verdict === 'applied' || verdict.then === 'fail')
}

/** @param {any} history */
const reports = history => history.executions.map((/** @type {any} */ x) => x.evidence).filter(Boolean)

/** @param {any} history @returns {string} */
const externalKey = history => reports(history).findLast((/** @type {any} */ r) => r.key)?.key || ''

/** The reasoning of the last execution, in its own words. @param {any} history */
function lastWord(history) {
  const last = reports(history).at(-1)
  return last && last.next ? h('p', { class: 'quiet', dir: 'auto' }, last.next) : null
}

/**
 * The contracts that the executions began under, the latest first, and what the kind
 * says today where that is something else.
 * @param {any} history
 * @param {string} today
 */
export function contracts(history, today) {
  const words = new Map()
  for (const x of history.executions.toReversed()) {
    if (x.begun_at && x.promise && !words.has(x.promise.words)) words.set(x.promise.words, x.token)
  }
  const [latest, ...earlier] = words.entries()
  if (!latest && !today) return null
  const text = (/** @type {string} */ s) => h('p', { class: 'words', dir: 'auto' }, s)
  return h('section', { class: 'panel', id: 'contract' }, h('h2', {}, t('contract')),
    latest ? h('p', { class: 'quiet' }, `${t('execution')} ${latest[1]} ${t('beganUnder')}`)
      : !history.executions.some((/** @type {any} */ x) => x.begun_at) && h('p', { class: 'quiet' }, t('notBegunUnder')),
    text(latest ? latest[0] : today),
    latest && today && today !== latest[0] && [h('p', { class: 'differs' }, t('todayDiffers')), h('details', {}, h('summary', {}, t('today')), text(today))],
    earlier.map(([was, token]) => h('details', {}, h('summary', {}, `${t('execution')} ${token} ${t('beganUnderOther')}`), text(was))))
}
