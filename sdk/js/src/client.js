/**
 * The client: one account at one server, in one tab.
 *
 * @module
 */

import { linked } from './clock.js'
import { ofKind, press, settled } from './drafts.js'
import { newId } from './ids.js'
import { createKeeper } from './keeper.js'
import { mine } from './rules.js'

/** @import {Box, ClientOptions, Draft, Env, Operation, Problem, SubmitOptions} from './types.js' */
/** @import {OperationHandle} from './operation.js' */

/**
 * What this package throws. Nothing was sent by a call that throws one. The codes:
 *
 * - `invalid-params`: the parameters are no JSON value
 * - `not-stored`: this browser did not let us write the intent; `cause` says why
 * - `closed`: the client was closed
 * - from `history`: those of {@link Problem}, which is in `problem`
 */
export class SemelError extends Error {
  /** @param {string} code stable @param {{cause?: unknown, problem?: Problem}} [more] */
  constructor(code, more) {
    super(code, more)
    this.name = 'SemelError'
    this.code = code
    this.problem = more?.problem
  }
}

/** @returns {Env} the browser's own; what throws or is missing is left out */
function browser() {
  const g = /** @type {any} */ (globalThis)
  /** @param {string} name */
  const maybe = name => {
    try {
      return g[name]
    } catch {}
  }
  return {
    indexedDB: maybe('indexedDB'),
    localStorage: maybe('localStorage'),
    locks: g.navigator?.locks,
    BroadcastChannel: g.BroadcastChannel,
    offline: () => g.navigator?.onLine === false,
    hidden: () => g.document?.visibilityState == 'hidden',
    window: g.window,
  }
}

/** @typedef {ReturnType<typeof createClient>} Client one account at one server */

/**
 * Makes a client. It does nothing until it is asked to; call `resume` when the page loads.
 *
 * @param {ClientOptions} options
 */
export function createClient(options) {
  const { account } = options
  const base = options.server ?? /** @type {any} */ (globalThis).location?.origin
  if (!account || !base) throw new TypeError('account and server are needed')
  const server = new URL(base).href.replace(/\/$/, '')
  const keeper = createKeeper(options, server, options.env ?? browser())
  const { clock, http, listeners } = keeper
  let closed = false

  /**
   * @template T
   * @param {(box: Box) => T} change @returns {Promise<T>}
   */
  async function update(change) {
    if (closed) throw new SemelError('closed')
    keeper.wake()
    try {
      return await keeper.update(change)
    } catch (cause) {
      throw new SemelError('not-stored', { cause })
    }
  }

  /** @returns {Promise<OperationHandle[]>} */
  async function pending() {
    const drafts = await update(box => ofKind(box))
    return drafts.filter(d => !settled(d)).map(keeper.adopt)
  }

  /** @returns {Promise<OperationHandle[]>} */
  async function resume() {
    const ops = await pending()
    keeper.check()
    return ops
  }

  return {
    /** Whose operations these are. */
    account,
    /** The base URL. */
    server,

    /**
     * Asks for an operation. The intent is stored before the first byte is sent; when that is
     * not possible, this rejects with `not-stored` and nothing was sent.
     *
     * Pressed twice is asked once: content equal to that of a still unsettled operation gives
     * that operation, in any tab; so does content equal to that of the current one when it is
     * settled, unless `again` is given.
     *
     * @param {string} kind
     * @param {any} params a JSON value. Every transmission carries the same bytes
     * @param {SubmitOptions} [options]
     * @returns {Promise<OperationHandle>} as soon as the intent is stored
     */
    async submit(kind, params, { again, acceptUntil, acceptWithin } = {}) {
      const text = JSON.stringify(params)
      if (text === undefined) throw new SemelError('invalid-params')
      const until = acceptWithin === undefined ? acceptUntil : http.now() + acceptWithin
      const now = clock.now()
      /** @type {Draft} */
      const fresh = {
        id: newId(http.now()), kind, params: text, account, server,
        createdAt: now, pressedAt: now, since: now, attempts: 0, phase: 'sending', n: 1,
        acceptUntil: until === undefined ? undefined : new Date(until).toISOString(),
      }
      const op = keeper.adopt(await update(box => press(box, fresh, again, keeper.keep)))
      keeper.show(op, op.draft)
      op.check()
      return op
    },

    /**
     * Goes on with every unsettled operation of this account that this browser knows: after a
     * reload, a crash, a sleep. From then on it also happens by itself, when the page comes
     * back from the back/forward cache, is looked at again, or is online again. Resolves with
     * the unsettled ones, the current one first.
     */
    resume,

    /** The unsettled operations, the current one first. */
    pending,

    /**
     * The operation of this kind that was last asked for in this browser, settled or not.
     *
     * @param {string} kind @returns {Promise<OperationHandle|undefined>}
     */
    async current(kind) {
      const [draft] = await update(box => ofKind(box, kind))
      return draft && keeper.adopt(draft)
    },

    /**
     * The account's own operations as the server has them, newest first, from every device.
     *
     * @param {string} [kind]
     * @param {{state?: Operation['state'], pageSize?: number, pageToken?: string}} [options]
     * @returns {Promise<{operations: Operation[], nextPageToken?: string}>}
     */
    async history(kind, { state, pageSize, pageToken } = {}) {
      const all = Object.entries({ kind, state, page_size: pageSize, page_token: pageToken })
      const query = new URLSearchParams(/** @type {any} */ (all.filter(([, value]) => value)))
      const { body, problem, status } = await http.ask('GET', `/v1/operations?${query}`, linked())
      if (!Array.isArray(body?.operations)) {
        const why = problem ?? mine('unclear-answer', status)
        throw new SemelError(why.code, { problem: why })
      }
      return { operations: body.operations, nextPageToken: body.next_page_token || undefined }
    },

    /**
     * Goes on under a fresh credential of the same account. For another account, close this
     * client and make a new one.
     *
     * @param {ClientOptions['token']} token
     */
    setToken(token) {
      http.setToken(token)
      return resume()
    },

    /**
     * Calls `listener` whenever an operation changes, in this tab or another one.
     *
     * @param {(op: OperationHandle) => void} listener @returns {() => void} call it to stop
     */
    on(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },

    /** Removes this account's settled operations from this browser. The unsettled ones stay. */
    forget: () => update(box => box.all().forEach(draft => settled(draft) && box.remove(draft.id))),

    /** Where drafts are kept. */
    storage: async () => (await keeper.store()).name,

    /** Stops all work in this tab. What is unsettled stays stored, and other tabs go on. */
    close() {
      closed = true
      return keeper.close()
    },
  }
}
