/**
 * Intents. A draft is one user intent with one identity; these rules decide whether a press
 * of the button is a new intent or one that is already there. All of them run inside
 * {@link Store.update}, so that two tabs cannot decide differently.
 *
 * @module
 */

/** @import {Box, Draft, SubmitOptions, Store} from './types.js' */

const SETTLED = ['done', 'failed', 'abandoned', 'rejected', 'expired', 'conflict']

/** Will nothing change any more? @param {Draft} draft */
export const settled = draft => SETTLED.includes(draft.phase)

/**
 * Writes a JSON value with its members in order, to compare contents. It is never an
 * identity and never sent.
 *
 * @param {any} value @returns {string}
 */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical)}]`
  if (value && typeof value == 'object') {
    return `{${Object.keys(value).sort().map(name => JSON.stringify(name) + ':' + canonical(value[name]))}}`
  }
  return JSON.stringify(value)
}

/** The drafts of one kind, the current one first. @param {Box} box @param {string} [kind] */
export const ofKind = (box, kind) =>
  box.all().filter(d => !kind || d.kind == kind).sort((a, b) => b.pressedAt - a.pressedAt)

/**
 * Decides what a press means, stores the decision and returns the draft.
 *
 * In this order:
 * 1. "again after X" that was pressed before: the operation it made then.
 * 2. Content equal to that of an unsettled operation: that one, even if others came since.
 * 3. Content equal to that of the current operation, settled: that one. If it was rejected,
 *    nothing is recorded anywhere, so the same identity goes out once more.
 * 4. Else a new intent.
 *
 * "Again after X" skips 2 and 3; `again: true` skips 3.
 *
 * @param {Box} box
 * @param {Draft} fresh what a new intent would look like
 * @param {SubmitOptions['again']} again
 * @param {number} keep how many settled drafts stay
 * @returns {Draft}
 */
export function press(box, fresh, again, keep) {
  const drafts = ofKind(box, fresh.kind)
  const content = canonical(JSON.parse(fresh.params))
  const same = (/** @type {Draft} */ d) => d.params != '' && canonical(JSON.parse(d.params)) == content
  const after = (again !== true && again && (typeof again == 'object' ? again.id : again)) || undefined
  let found = after
    ? drafts.find(d => d.after == after && same(d))
    : drafts.find(d => !settled(d) && same(d))
  const current = drafts[0]
  if (!found && !again && current && same(current)) found = current
  // Later than every other, whatever became of the device's clock.
  const pressedAt = Math.max(fresh.pressedAt, (current?.pressedAt ?? 0) + 1)
  /** @type {Draft} */
  const draft = found ? { ...found, pressedAt, n: found.n + 1 } : { ...fresh, pressedAt, after }
  if (draft.phase == 'rejected') {
    draft.phase = 'sending'
    draft.since = fresh.since
    draft.problem = undefined
  }
  box.put(draft)
  prune(box, keep)
  return draft
}

/**
 * Keeps the newest `keep` settled drafts of an account, and every unsettled one: an identity
 * stays until its answer is stored. Only the newest of a kind keeps its parameters.
 *
 * @param {Box} box @param {number} keep
 */
export function prune(box, keep) {
  const kinds = new Set()
  for (const draft of ofKind(box)) {
    const newest = !kinds.has(draft.kind)
    kinds.add(draft.kind)
    if (!settled(draft)) continue
    if (keep-- <= 0 && !newest) box.remove(draft.id)
    else if (!newest && draft.params) box.put({ ...draft, params: '' })
  }
}
