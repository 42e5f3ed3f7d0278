/**
 * What happened to one task, step by step, from the record (`…/history`), from what the
 * switches did, and from what this page itself saw. Pure.
 *
 * @module
 */

/**
 * @typedef {'page'|'database'|'worker'|'generator'} Lane
 *
 * @typedef {object} Step
 * @property {number} at milliseconds since 1970
 * @property {Lane} from
 * @property {Lane} [to] absent: it happens at one place
 * @property {'move'|'deed'|'cut'|'end'|'wait'} form an arrow, a deed, an arrow that never arrives, a death, something under way
 * @property {import('./words.js').Word} word
 * @property {import('./words.js').Word} [text]
 * @property {Record<string, any>} [values]
 * @property {string} [said] in somebody's own words
 * @property {boolean} [once] one of the deeds that must happen once: committed, executed
 * @property {number} [times] so often in a row
 *
 * @typedef {object} Facts
 * @property {any} [operation]
 * @property {any} [history]
 * @property {{losses: any[], kills: any[]}} [causes]
 * @property {[string, number][]} seen
 * @property {number} [sent] when it was made here, if it was sent
 * @property {number} now when the record was read: what has happened since, nobody knows here
 */

/** @param {string|undefined} time */
const ms = time => Date.parse(time ?? '')

/** @param {Facts} facts @returns {Step[]} */
export function trail({ operation, history, causes, seen, sent, now }) {
  /** @type {Step[]} */
  const steps = []
  if (!operation) return localOnly(seen, sent)
  const created = ms(operation.created_at)
  const losses = (causes?.losses ?? []).filter(loss => loss.operation_id == operation.key.id)
  const attempts = history?.attempts ?? []
  const add = (/** @type {Step} */ step) => steps.push(step)

  add({ at: Math.min(created, ms(attempts[0]?.at) || created), from: 'page', to: 'database', form: 'move', word: 'eSent', text: 'eSentText' })
  add({ at: created, from: 'database', form: 'deed', word: 'eCommitted', text: 'eCommittedText', once: true })
  for (const loss of losses) {
    add({ at: Math.max(created, ms(loss.at)), from: 'database', to: 'page', form: 'cut', word: 'eLost', text: 'eLostText' })
  }
  resent(attempts).forEach(add)
  saw(seen, created, losses.length > 0).forEach(add)
  executions(history?.executions ?? [], causes?.kills ?? [], now).forEach(add)
  for (const verdict of history?.verdicts ?? []) {
    const word = /** @type {const} */ ({ applied: 'eApplied', not_applied: 'eNotApplied', acknowledged: 'eAcknowledged' })
    add({ at: ms(verdict.at), from: 'database', form: 'deed', word: 'eVerdict', text: word[/** @type {keyof typeof word} */ (verdict.verdict)], said: verdict.evidence })
  }
  if (operation.state == 'abandoned') {
    add({ at: ms(operation.updated_at), from: 'database', form: 'deed', word: 'eStopped', text: 'eStoppedText' })
  }
  return steps.sort((a, b) => a.at - b.at) // a stable sort: what comes first stays first
}

/**
 * The transmissions after the first. A browser sends one again by itself when the connection
 * that it has reused breaks: the same attempt, seen twice.
 *
 * @param {any[]} attempts @returns {Step[]}
 */
function resent(attempts) {
  /** @type {Step[]} */
  const steps = []
  attempts.slice(1).forEach((attempt, i) => {
    const alone = attempt.attempt_id == attempts[i].attempt_id
    const last = steps.at(-1)
    if (alone && last?.text == 'eResentAlone') last.times = (last.times ?? 1) + 1
    else steps.push({ at: ms(attempt.at), from: 'page', to: 'database', form: 'move', word: 'eResent', text: alone ? 'eResentAlone' : 'eResentText' })
  })
  return steps
}

/** What this page saw, before the server has told anything. @param {[string, number][]} seen @param {number|undefined} sent @returns {Step[]} */
function localOnly(seen, sent) {
  if (!sent) return []
  /** @type {Step[]} */
  const steps = [{ at: sent, from: 'page', to: 'database', form: 'move', word: 'eSent', text: 'eSentText' }]
  for (const [what, at] of seen) {
    if (what == 'no-answer') steps.push({ at: Math.max(at, sent), from: 'database', to: 'page', form: 'cut', word: 'eNoAnswer', text: 'eNoAnswerText' })
  }
  return steps
}

/**
 * @param {[string, number][]} seen @param {number} created @param {boolean} lost the switch tells of the loss itself
 * @returns {Step[]}
 */
function saw(seen, created, lost) {
  /** @type {Step[]} */
  const steps = []
  for (const [what, when] of seen) {
    // A page on another clock must not come before what it saw.
    const at = Math.max(created, when)
    if (what == 'answered') steps.push({ at, from: 'database', to: 'page', form: 'move', word: 'eAnswered', text: 'eAnsweredText' })
    if (what == 'no-answer' && !lost) steps.push({ at, from: 'database', to: 'page', form: 'cut', word: 'eNoAnswer', text: 'eNoAnswerText' })
    if (what == 'found') steps.push({ at, from: 'page', to: 'database', form: 'move', word: 'eFound', text: 'eFoundText' })
    if (what == 'shown') steps.push({ at, from: 'database', to: 'page', form: 'move', word: 'eShown', text: 'eShownText' })
  }
  return steps
}

/** Waiting again and again is told once, with a number. @param {any[]} all @param {any[]} kills @param {number} now @returns {Step[]} */
function executions(all, kills, now) {
  /** @type {Step[]} */
  const steps = []
  let shape = ''
  all.forEach((x, i) => {
    const next = execution(x, all.slice(0, i), all[i + 1], kills, now)
    const words = next.map(step => step.word).join()
    const last = steps.at(-1)
    if (words == shape && last && x.outcome == 'unknown' && !x.begun_at) last.times = (last.times ?? 1) + 1
    else steps.push(...next)
    shape = words
  })
  return known(steps)
}

/** A call without an answer did have its effect, if the generator's record shows it later. @param {Step[]} steps @returns {Step[]} */
function known(steps) {
  const shown = steps.some(({ word }) => word == 'eReplayed' || word == 'eThere')
  const call = steps.findIndex(({ word }) => word == 'eCalled')
  if (!shown || call < 0 || steps.some(({ word }) => word == 'eExecuted')) return steps
  return steps.toSpliced(call + 1, 0, { at: steps[call].at, from: 'generator', form: 'deed', word: 'eExecuted', text: 'eExecutedKnown', once: true })
}

/**
 * @param {any} x @param {any[]} before @param {any} after @param {any[]} kills @param {number} now
 * @returns {Step[]}
 */
function execution(x, before, after, kills, now) {
  const claimed = ms(x.claimed_at)
  const ended = ms(x.ended_at)
  const { did, proof, found, took_ms: took, next } = x.evidence ?? {}
  if (did == 'decide') {
    return /^reconcile/.test(next ?? '')
      ? [{ at: ended, from: 'worker', to: 'database', form: 'move', word: 'eDecided', text: 'eDecidedText' }]
      : [{ at: ended, from: 'worker', form: 'wait', word: 'eWait', text: 'eWaitText' }]
  }
  /** @type {Step[]} */
  const steps = [{ at: claimed, from: 'database', to: 'worker', form: 'move', word: 'eClaimed', text: 'eClaimedText',
    values: { token: x.token, seconds: Math.round((ms(x.lease_ends_at) - claimed) / 1000) } }]
  if (did == 'hand_back') return [...steps, { at: ended, from: 'worker', to: 'database', form: 'move', word: 'eHandBack', text: 'eHandBackText' }]
  if (did == 'look_up') steps.push({ at: claimed, from: 'worker', to: 'generator', form: 'move', word: 'eLookUp', text: 'eLookUpText' }, ...looked(found, ended))
  else if (x.begun_at) {
    const again = before.some(b => b.begun_at && b.evidence?.did != 'hand_back')
    steps.push({ at: ms(x.begun_at), from: 'worker', to: 'generator', form: 'move', word: again ? 'eCalledAgain' : 'eCalled', text: again ? 'eCalledAgainText' : 'eCalledText' })
    steps.push(...(x.ended_at ? answered(proof, ended, took) : unanswered(x, after, kills, now)))
  }
  if (x.outcome == 'applied') steps.push({ at: ended, from: 'worker', to: 'database', form: 'move', word: 'eWritten', text: 'eWrittenText', values: { token: x.token } })
  if (x.outcome == 'refused') steps.push({ at: ended, from: 'worker', to: 'database', form: 'move', word: 'eWritten', text: 'eWrittenFailed' })
  if (x.late_at) steps.push({ at: ms(x.late_at), from: 'worker', to: 'database', form: 'cut', word: 'eLate', text: 'eLateText' })
  return steps
}

/** How a look-up ended. @param {string} found @param {number} at @returns {Step[]} */
function looked(found, at) {
  const step = /** @type {const} */ ({ at, from: 'generator', to: 'worker', form: 'move' })
  if (found == 'succeeded') return [{ ...step, word: 'eThere', text: 'eThereText' }]
  if (found == 'absent') return [{ ...step, word: 'eAbsent', text: 'eAbsentText' }]
  return [{ ...step, word: 'eCannotTell', text: 'eCannotTellText' }]
}

/** How a call ended. @param {any} proof @param {number} at @param {number|undefined} took @returns {Step[]} */
function answered(proof, at, took) {
  const step = /** @type {const} */ ({ at, from: 'generator', to: 'worker', form: 'move' })
  switch (proof?.proves) {
    case 'applied':
      return proof.replayed
        ? [{ ...step, word: 'eReplayed', text: 'eReplayedText' }]
        : [{ at, from: 'generator', form: 'deed', word: 'eExecuted', text: took ? 'eExecutedMs' : 'eExecutedText', values: { ms: took }, once: true },
          { ...step, word: 'eReturned', text: 'eReturnedText' }]
    case 'refused':
      return [{ ...step, word: 'eRefused', text: 'eRefusedText' }]
    case 'not_applied':
      return [{ ...step, word: 'eNothing', text: 'eNothingText' }]
    default:
      return [{ ...step, form: 'cut', word: 'eUnknown', text: 'eUnknownText' }]
  }
}

/** A call whose worker has not told how it ended. @param {any} x @param {any} after @param {any[]} kills @param {number} now @returns {Step[]} */
function unanswered(x, after, kills, now) {
  const begun = ms(x.begun_at)
  const end = ms(x.lease_ends_at)
  const seconds = Math.round((end - ms(x.claimed_at)) / 1000)
  const kill = kills.find(k => ms(k.at) >= begun && ms(k.at) <= end)
  /** @type {Step[]} */
  const steps = []
  if (kill) {
    steps.push({ at: ms(kill.finished_at), from: 'generator', form: 'deed', word: 'eExecuted', text: 'eExecutedText', once: true })
    steps.push({ at: ms(kill.at), from: 'worker', form: 'end', word: 'eKilled', text: 'eKilledText' })
  }
  if (!after && now < end) {
    steps.push(kill
      ? { at: ms(kill.at), from: 'database', form: 'wait', word: 'eLeaseWait', text: 'eLeaseWaitText', values: { seconds } }
      : { at: begun, from: 'worker', form: 'wait', word: 'eRunning', text: 'eRunningText' })
    return steps
  }
  if (!kill) steps.push({ at: end, from: 'worker', form: 'end', word: 'eGone', text: 'eGoneText' })
  steps.push({ at: end, from: 'database', form: 'deed', word: 'eLease', text: 'eLeaseText' })
  return steps
}
