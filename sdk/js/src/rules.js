/**
 * The rules, as pure functions over a draft: what to do next, and what an answer proves.
 * Everything that waits, sends or stores is elsewhere.
 *
 * - No answer is never a failure. It is `unconfirmed`, and it is looked up.
 * - A proof covers one transmission. Once a transmission may have been recorded, a later 400
 *   or 401 proves nothing about it: the draft stays `unconfirmed` and only an answer for its
 *   own identity ends that.
 * - "Not found" is no proof of absence, but it allows the same bytes under the same identity.
 * - What the server has once confirmed is never sent again.
 *
 * @module
 */

import { settled } from './drafts.js'

/** @import {Answer, Draft, Operation, Phase, Problem} from './types.js' */

/** States that are phases of the same name. */
const SAME = ['accepted', 'failed', 'needs_reconciliation', 'abandoned']

/** A state that only a later server knows is shown as `processing`. @param {string} state */
const phaseOf = state =>
  /** @type {Phase} */ (state == 'succeeded' ? 'done' : SAME.includes(state) ? state : 'processing')

/** What ends it without an operation's own state. @type {Record<string, Phase>} */
const ENDS = {
  'fingerprint-mismatch': 'conflict',
  'operation-expired': 'expired',
  'operation-abandoned': 'abandoned',
}

/** @typedef {'PUT'|'GET'|'DELETE'} Verb */

/**
 * What to do next with an unsettled draft.
 *
 * @param {Draft} draft
 * @returns {Verb|'follow'|'nothing'}
 */
export function next(draft) {
  if (settled(draft)) return 'nothing'
  if (draft.abandon) return 'DELETE'
  if (draft.operation) return 'follow'
  return draft.unknown && !draft.absent ? 'GET' : 'PUT'
}

/** @param {Draft} draft @param {Phase} phase @param {number} now @returns {Draft} */
const enter = (draft, phase, now) => (draft.phase == phase ? draft : { ...draft, phase, since: now })

/**
 * Marks that a transmission begins. Stored before the first byte goes out, so that after a
 * crash it is known that it may have been recorded.
 *
 * @param {Draft} draft @param {number} now @returns {Draft}
 */
export const begin = (draft, now) => ({
  ...draft,
  attempts: draft.attempts + 1,
  firstSentAt: draft.firstSentAt ?? now,
  lastSentAt: now,
  open: true,
  absent: false,
})

/**
 * Takes over a draft, after a reload or from a tab that is gone: a transmission without a
 * stored answer may have been recorded.
 *
 * @param {Draft} draft @param {number} now @returns {Draft}
 */
export function recover(draft, now) {
  const fresh = { ...draft, needs: undefined }
  if (!draft.open) return fresh
  return enter({ ...fresh, open: false, unknown: true }, draft.operation ? draft.phase : 'unconfirmed', now)
}

/**
 * Asks to make sure that it never happens. What was never sent needs no server for that.
 *
 * @param {Draft} draft @param {number} now @returns {Draft}
 */
export function abandon(draft, now) {
  if (settled(draft)) return draft
  return draft.attempts ? { ...draft, abandon: true } : enter(draft, 'abandoned', now)
}

/**
 * Takes in an answer. Returns the draft as it is now, and whether that answer settled the
 * question that was asked; if not, it must be asked again after a while.
 *
 * @param {Draft} draft @param {Verb} verb @param {Answer} answer @param {number} now
 * @returns {[Draft, boolean]}
 */
export function absorb(draft, verb, answer, now) {
  const { status, problem } = answer
  const operation = ours(draft, answer.body ?? problem?.operation)
  // Late news about a draft that another tab has settled: the first word stands.
  if (settled(draft)) return [draft, true]
  const end = ENDS[problem?.code ?? '']
  if (end) {
    // With a conflict comes the operation of the other request.
    const known = end == 'conflict' ? draft.operation : operation ?? draft.operation
    return [enter({ ...draft, problem, open: false, operation: known }, end, now), true]
  }
  if (operation) {
    if (operation.key.account != draft.account) {
      // It was recorded, and for somebody else. It is not ours to show.
      return [missed({ ...draft, needs: 'sign-in' }, verb, mine('other-account', status), now), false]
    }
    return [confirm(draft, verb, answer, operation, now), true]
  }
  if (status == 304) return [draft.problem ? { ...draft, problem: undefined } : draft, true]
  if (verb == 'GET' && status == 404 && !draft.operation) return [{ ...draft, absent: true, needs: undefined }, true]
  // "Too late to abandon", and the record itself did not come along: look it up.
  if (verb == 'DELETE' && problem?.code == 'already-started') {
    return [{ ...draft, abandon: false, unknown: true, problem }, true]
  }
  return [missed({ ...draft, needs: status == 401 ? 'sign-in' : undefined }, verb, problem ?? mine('unclear-answer', status), now), false]
}

/** A problem of our own: it proves nothing. @param {string} code @param {number} status @returns {Problem} */
export const mine = (code, status) => ({ code, status, retryable: true, recorded: 'unknown' })

/**
 * The operation, if it is a whole one and carries the draft's identity.
 *
 * @param {Draft} draft @param {Operation|undefined} operation
 */
function ours(draft, operation) {
  const fits = operation?.key?.id == draft.id && operation.key.kind == draft.kind &&
    operation.state && operation.revision > 0
  return fits ? operation : undefined
}

/**
 * The server has it, and says how it stands.
 *
 * @param {Draft} draft @param {Verb} verb @param {Answer} answer @param {Operation} operation
 * @param {number} now @returns {Draft}
 */
function confirm(draft, verb, answer, operation, now) {
  const seen = draft.operation
  // A stream and a look-up may overtake each other; the revision says which is newer.
  if (seen && operation.revision < seen.revision) return draft
  const { params: _, ...told } = operation
  const same = seen?.revision == told.revision
  const late = same && draft.problem?.code == 'already-started' ? draft.problem : undefined
  const problem = verb == 'DELETE' ? answer.problem : late
  const etag = answer.etag ?? (same ? draft.etag : undefined)
  if (same && verb == 'GET' && draft.problem == problem && draft.etag == etag && !told.progress) return draft
  return enter({
    ...draft,
    operation: told,
    problem,
    etag,
    open: false,
    needs: undefined,
    abandon: verb == 'DELETE' ? false : draft.abandon,
  }, phaseOf(told.state), now)
}

/**
 * No answer about the operation itself. Only for a PUT does it matter what was refused:
 * `rejected` needs that every transmission so far was provably not recorded.
 *
 * @param {Draft} draft @param {Verb} verb @param {Problem} problem @param {number} now
 * @returns {Draft}
 */
function missed(draft, verb, problem, now) {
  if (verb != 'PUT') return { ...draft, problem }
  const unknown = draft.unknown || problem.recorded != 'no'
  return enter({ ...draft, problem, unknown, open: false }, unknown ? 'unconfirmed' : problem.retryable ? 'sending' : 'rejected', now)
}
