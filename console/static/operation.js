import { api, Problem } from './api.js'
import { fill, h, json } from './dom.js'
import { clock, t, when } from './i18n.js'
import { badge } from './list.js'
import { repeat } from './poll.js'
import { contracts, proof } from './proof.js'
import { resolution } from './resolution.js'

const EVERY = 2000

/** @param {HTMLElement} main @param {import('./app.js').Context} context */
export async function operation(main, context) {
  const { rest, signal, say } = context
  const key = { account: rest[0], kind: rest[1], id: rest[2] }
  const body = h('article', { class: 'operation' })
  let revision = -1
  const draw = async (/** @type {string} */ notice = '') => {
    const op = await api.get(key)
    if (signal.aborted) return
    const told = body.querySelector('#progress')
    if (told) fill(told, progress(op))
    if (op.revision === revision && !notice) return
    if (revision >= 0) say(t(op.state))
    revision = op.revision
    await detail(body, op, { ...context, notice, done: async () => { await draw(); main.focus(); say(t('recorded')) }, changed: () => draw(t('stale')) })
  }
  try {
    await draw()
  } catch (problem) {
    if (!(problem instanceof Problem) || problem.status !== 404) throw problem
    fill(body, h('h1', {}, h('bdi', { class: 'id' }, key.id || '–')), h('p', { class: 'wrong' }, t('notFound')))
  }
  if (signal.aborted) return
  fill(main, body)
  if (revision >= 0) repeat(draw, EVERY, context)
}

/**
 * Draws one operation in full; where it needs reconciliation, with the form for a
 * verdict.
 * @param {HTMLElement} body
 * @param {any} op
 * @param {import('./app.js').Context & {done: () => any, changed: () => any, stale?: () => boolean, notice?: string}} context
 */
export async function detail(body, op, context) {
  const [history, kind] = await Promise.all([api.history(op.key), api.kind(op.key.kind).catch(() => null)])
  if (context.signal.aborted || context.stale?.()) return
  const fact = (/** @type {string} */ name, /** @type {any} */ value) => value !== undefined && value !== '' && [h('dt', {}, t(name)), h('dd', {}, value)]
  const unknown = op.state === 'needs_reconciliation'
  fill(body,
    h('h1', {}, h('bdi', { class: 'id' }, op.key.id)),
    context.notice && !unknown && h('p', { class: 'wrong', role: 'alert' }, context.notice),
    h('p', { class: 'badges' }, badge(op.state), op.contradicted && badge('contradicted'), op.acknowledged && badge('acknowledged')),
    h('dl', { class: 'facts' },
      fact('account', op.key.account), fact('kind', op.key.kind),
      op.error && fact('reason', [h('bdi', {}, op.error.code), op.error.message && [': ', h('bdi', {}, op.error.message)]].flat()),
      op.state === 'processing' && fact('progress', h('span', { id: 'progress' }, progress(op))),
      fact('created', when(op.created_at)), fact('updated', when(op.updated_at)), op.expires_at && fact('expires', when(op.expires_at)),
      fact('attempts', op.attempts), fact('executions', op.executions), fact('revision', op.revision)),
    proof(op, history),
    unknown && !op.acknowledged && resolution(op, context),
    h('section', { class: 'panel' }, h('h2', {}, t('timeline')), timeline(op, history)),
    contracts(history, kind?.contract || ''),
    op.params !== undefined && block('params', op.params), op.result !== undefined && block('result', op.result))
}

/** @param {string} name @param {any} value */
function block(name, value) {
  return h('details', { class: 'panel' }, h('summary', {}, t(name)), json(value))
}

/** @param {any} op */
const progress = op => op.progress ? [`${Math.round(100 * op.progress.fraction)} % `, h('bdi', {}, op.progress.note || '')] : ['–']

/** Everything in the order in which it happened. @param {any} op @param {any} history */
function timeline(op, history) {
  /** @type {{at: string, node: any}[]} */
  const items = [{ at: op.created_at, node: [h('b', {}, t('accept'))] }]
  for (const a of history.attempts) items.push({ at: a.at, node: [h('span', { class: 'quiet' }, `${t('attempt')} `), h('bdi', {}, a.attempt_id)] })
  for (const x of history.executions) {
    items.push({ at: x.claimed_at, node: execution(x, op) })
    if (x.late_outcome) {
      items.push({ at: x.late_at, node: [h('b', {}, `${t('execution')} ${x.token}: `), outcome(x.late_outcome), ` ${t('late')}`, evidence(x.late_evidence)] })
    }
  }
  for (const v of history.verdicts) {
    items.push({ at: v.at, node: [h('b', {}, `${t('verdict')}: ${t(v.verdict)}${v.then ? ', ' + v.then : ''} `), `${t('by')} `, h('bdi', {}, v.by), h('blockquote', { tabindex: 0, dir: 'auto' }, v.evidence)] })
  }
  items.sort((a, b) => Date.parse(a.at) - Date.parse(b.at))
  return h('ol', { class: 'timeline' }, items.map(i => h('li', {}, h('time', { datetime: i.at, title: when(i.at) }, clock(i.at)), h('div', {}, i.node))))
}

/** @param {string} name */
const outcome = name => h('span', { class: `badge ${name}` }, t(name))

/** @param {any} x @param {any} op */
function execution(x, op) {
  const current = !x.ended_at && op.state === 'processing' && Date.parse(x.lease_ends_at) > Date.now()
  return [
    h('b', {}, `${t('execution')} ${x.token}: `),
    x.ended_at ? outcome(x.outcome) : h('span', { class: current ? 'quiet' : 'wrong' }, t(current ? 'running' : 'neverEnded')),
    h('ul', { class: 'steps' },
      h('li', {}, `${t('leased')} `, h('bdi', {}, x.worker), `, ${t('leaseUntil')} ${clock(x.lease_ends_at)}`),
      h('li', {}, x.begun_at ? `${t('begun')} ${clock(x.begun_at)}` : t('notBegun')),
      x.ended_at && h('li', {}, `${t('ended')} ${clock(x.ended_at)}`)),
    evidence(x.evidence),
  ]
}

/** @param {any} value */
function evidence(value) {
  if (!value) return null
  return h('details', {}, h('summary', {}, t('seen')), json(value))
}
