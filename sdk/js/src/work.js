/**
 * The working tab's side of one operation: send, look up, follow, abandon, until it is settled.
 * What to do and what an answer proves is in `rules.js`; here is the doing and the waiting.
 *
 * @module
 */

import { backoff, linked, pause } from './clock.js'
import { createParser, readText } from './events.js'
import { json } from './http.js'
import { newId } from './ids.js'
import { absorb, begin, next } from './rules.js'

/** @import {Answer} from './types.js' */
/** @import {Keeper} from './keeper.js' */
/** @import {OperationHandle} from './operation.js' */
/** @import {Verb} from './rules.js' */

/** While the browser says that it is offline, it is not believed for longer than this. */
const OFFLINE = 60_000
/** So many event streams in a row that ended without an event: then look-ups take over. */
const DEAF = 3

/** Another tab works on it now. */
export const leaseLost = Error()

/**
 * Works on one operation until it is settled, the signal aborts, or somebody has to sign in.
 * Rejects with {@link leaseLost}, or when a transmission could not be marked in the store.
 *
 * @param {OperationHandle} op @param {Keeper} keeper @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
export async function work(op, keeper, signal) {
  const { clock, http, times } = keeper
  const path = `/v1/operations/${encodeURIComponent(op.kind)}/${op.id}`
  /** Misses in a row. */
  let failures = 0
  /** Event streams in a row that told nothing. */
  let deaf = 0
  /** Look-ups in a row without news. */
  let quiet = 0
  /** How long the server asked to wait between look-ups. */
  let hint = 0
  /** The first bound of the wait before an event stream is opened again; the stream may set it. */
  let pace = times.backoff
  /** How the last event stream ended, if it has not been looked past yet. */
  let ended = ''
  /** The newest that is known. */
  const revision = () => op.draft.operation?.revision

  while (!signal.aborted && !op.draft.needs) {
    const step = next(op.draft)
    if (step == 'nothing') return
    if (keeper.env.offline?.()) await rest(OFFLINE, 0, 'offline')
    else if (step != 'follow') await ask(step)
    else if (ended) await look()
    else await listen()
  }

  /** One request, and a wait where it was in vain. @param {Verb} verb */
  async function ask(verb) {
    const answer = await exchange(verb)
    if (!answer || await take(verb, answer) || op.draft.needs) return
    // Somebody pressed "stop waiting" meanwhile: that needs no patience.
    if (op.draft.abandon && verb != 'DELETE') return
    await rest(backoff(clock, failures, times.backoff, times.cap), answer.retryAfter, 'retry')
  }

  /**
   * Sends, and waits for the answer. Undefined when it turned out that there is nothing to
   * send, or when we went away before the answer.
   *
   * @param {Verb} verb @returns {Promise<Answer|undefined>}
   */
  async function exchange(verb) {
    let go = true
    if (verb == 'PUT') {
      await keeper.commit(op, draft => {
        go = next(draft) == verb
        if (!go) return draft
        const now = clock.now()
        // Nobody else may send before this transmission has surely ended.
        return { ...begin(draft, now), lease: { tab: keeper.tab, until: now + times.answer + times.lease } }
      }, true)
    }
    if (!go || signal.aborted) return
    keeper.show(op, op.draft, { connection: 'asking' })
    op.asked = op.bell.count
    const link = linked(signal)
    op.interrupt = link.abort
    const { params, acceptUntil, etag } = op.draft
    const answer = await http.ask(verb, path, link, verb == 'PUT' ? {
      'content-type': 'application/json',
      'attempt-id': newId(http.now()),
      'accept-until': acceptUntil,
    } : { 'if-none-match': verb == 'GET' && etag }, verb == 'PUT' ? params : undefined)
    return answer.status || !signal.aborted ? answer : undefined
  }

  /**
   * Takes an answer in; true when it settled what was asked.
   *
   * @param {Verb} verb @param {Answer} answer
   */
  async function take(verb, answer) {
    const [draft, good] = absorb(op.draft, verb, answer, clock.now())
    failures = good ? 0 : failures + 1
    hint = answer.retryAfter ?? 0
    if (draft != op.draft) {
      // Progress is for the eye; it is not worth a write.
      if (op.draft.operation && draft.operation?.revision == revision() && draft.problem == op.draft.problem) keeper.show(op, draft)
      else await keeper.commit(op, stored => absorb(stored, verb, answer, clock.now())[0])
    }
    return good
  }

  /** Follows one event stream; where events do not come through, only waits. */
  async function listen() {
    if (deaf < DEAF) {
      ended = await stream()
      if (ended == 'heard') deaf = 0
      if (ended == 'cut') deaf++
    }
    if (next(op.draft) != 'follow' || ended == 'silent') return
    const poll = Math.min(times.cap, times.poll * 1.5 ** quiet) * (0.5 + clock.random() / 2)
    const why = await (ended && deaf < DEAF
      ? rest(backoff(clock, deaf + 1, pace, times.cap), 0, 'reconnect')
      : rest(poll, hint, 'poll'))
    if (why == 'bell') deaf = quiet = 0
    ended ||= 'none'
  }

  /** Looks past the stream. */
  async function look() {
    const [before, bad] = [revision(), failures]
    await ask('GET')
    const news = revision() != before
    quiet = ended == 'none' && !news ? quiet + 1 : 0
    // Looking told more than the silent stream: something on the way keeps events back.
    if (ended == 'silent' && news) deaf = DEAF
    // The server was away, and is back: so may be its events.
    if (bad && !failures) deaf = 0
    if (!failures) ended = ''
  }

  /**
   * Reads one event stream: to its end, or until it is silent for too long, or a bell rings.
   *
   * @returns {Promise<''|'heard'|'cut'|'silent'>} "cut" without a single event; '' if there was no permit for one
   */
  async function stream() {
    const link = linked(signal)
    let end = /** @type {''|'heard'|'cut'|'silent'} */ ('')
    /** @type {Promise<any>} */
    let tail = Promise.resolve()
    /** @param {typeof end} why */
    const leave = why => {
      end = why
      link.abort()
    }
    op.bell.addEventListener('ring', () => leave('heard'), link)
    op.interrupt = link.abort
    await keeper.permit(link, async () => {
      end = 'cut'
      // A server says something at once; if nothing comes, it is held back on the way.
      let timer = clock.setTimeout(link.abort, times.poll, 'first')
      const arm = () => {
        clock.clearTimeout(timer)
        timer = clock.setTimeout(() => leave('silent'), times.silence, 'silence')
      }
      try {
        const { ok, body, headers } = await http.request('GET', `${path}/events`, {
          accept: 'text/event-stream',
          'last-event-id': `${revision()}`,
        }, undefined, link.signal)
        if (ok && body && /^text\/event-stream/.test(headers.get('content-type') ?? '')) {
          keeper.show(op, op.draft, { connection: 'live' })
          // Progress comes as an event of its own, and is an operation all the same.
          const parse = createParser(({ data }) => {
            const body = json(data)
            if (!body?.key) return
            end = 'heard'
            tail = tail.then(() => take('GET', { status: 200, body })).catch(link.abort)
          }, ms => pace = ms)
          await readText(body, text => {
            arm()
            parse(text)
          })
        }
      } catch {
        // Cut, or never opened: the look-up that follows tells what is going on.
      }
      await tail
      clock.clearTimeout(timer)
      link.abort()
    })
    link.abort()
    return end
  }

  /**
   * Waits. A bell cuts it short, but never below what the server asked for.
   *
   * @param {number} ms @param {number|undefined} atLeast @param {string} label
   */
  async function rest(ms, atLeast = 0, label) {
    const start = clock.now()
    let end = start + Math.max(ms, atLeast)
    for (;;) {
      keeper.show(op, op.draft, { connection: label == 'offline' ? label : 'waiting', nextCheckAt: end })
      const why = await pause(clock, end - clock.now(), label, signal, op.bell)
      if (why != 'bell' || clock.now() >= start + atLeast) return why
      end = start + atLeast
    }
  }
}
