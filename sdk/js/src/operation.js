/**
 * What a page holds in its hand: one operation, its view, and the few things one can do.
 *
 * @module
 */

import { Bell } from './clock.js'
import { settled } from './drafts.js'

/** @import {Draft, Live, View} from './types.js' */

/**
 * What the client does for its operations.
 *
 * @typedef {object} Host
 * @property {() => number} now
 * @property {boolean} durable
 * @property {(op: OperationHandle) => void} check
 * @property {(op: OperationHandle) => Promise<void>} abandon
 * @property {(op: OperationHandle) => void} changed
 */

/**
 * Calls every listener. A mistake in one must not stop the work: it is reported as uncaught.
 *
 * @template T
 * @param {Iterable<(value: T) => void>} listeners @param {T} value
 */
export function tell(listeners, value) {
  for (const listener of [...listeners]) {
    try {
      listener(value)
    } catch (error) {
      (globalThis.reportError ?? console.error)(error)
    }
  }
}

/** One operation. Made by {@link Client}; there is one per operation ID and client. */
export class OperationHandle {
  /** @type {Set<(view: View) => void>} */
  #listeners = new Set()
  #host
  #closed = false

  /** @internal @param {Draft} draft @param {Host} host */
  constructor(draft, host) {
    this.#host = host
    /** @internal what is known; the store may know more */
    this.draft = draft
    /** @internal @type {Live} */
    this.live = { connection: 'asking' }
    /** @internal wakes whoever waits to try again */
    this.bell = new Bell()
    /** @internal how often the bell had rung when the last request was made */
    this.asked = 0
    /** @internal cuts the request that is under way */
    this.interrupt = () => {}
    /** @internal takes the work from a tab that gives no sign of life @type {(() => void)|undefined} */
    this.seize = undefined
    /** @internal this tab waits for the work, or does it, until this aborts @type {AbortController|undefined} */
    this.attended = undefined
    /** @internal ends when it no longer does @type {Promise<void>} */
    this.running = Promise.resolve()
    /** @internal this tab does it */
    this.working = false
    /**
     * What to show now.
     *
     * @type {View}
     */
    this.view = this.#look()
  }

  /** The operation ID. */
  get id() {
    return this.draft.id
  }

  /** The kind of operation. */
  get kind() {
    return this.draft.kind
  }

  /** The parameters, as they were given; undefined where they are no longer kept. @returns {any} */
  get params() {
    return this.draft.params ? JSON.parse(this.draft.params) : undefined
  }

  /**
   * Calls `listener` with the present view, and with every later one.
   *
   * @param {(view: View) => void} listener
   * @returns {() => void} call it to stop
   */
  on(listener) {
    this.#listeners.add(listener)
    tell([listener], this.view)
    return () => this.#listeners.delete(listener)
  }

  /**
   * The views from now on, up to the settled one. A slow reader gets the newest, not each.
   *
   * @returns {AsyncGenerator<View, void, void>}
   */
  async *[Symbol.asyncIterator]() {
    /** @type {View|undefined} */
    let seen
    do {
      const view = await this.#when(view => view != seen || this.#closed)
      if (this.#closed) return
      yield seen = view
    } while (!seen.settled)
  }

  /** Resolves with the last view, once nothing will change any more. @returns {Promise<View>} */
  get settled() {
    return this.#when(view => view.settled)
  }

  /**
   * "Stop waiting and make sure that it never happens." It is kept and carried on like the
   * operation itself. Resolves with the view when that is answered: `abandoned`; or what it
   * is, with the problem `already-started`, when it was too late.
   *
   * @returns {Promise<View>}
   */
  async abandon() {
    await this.#host.abandon(this)
    return this.#when(view => !view.abandoning)
  }

  /** Asks now instead of at the next time; never sooner than the server allows. */
  check() {
    this.#host.check(this)
  }

  /** @internal @param {Draft} draft @param {Live} [live] */
  show(draft, live = this.live) {
    if (draft.abandon && !this.draft.abandon) this.interrupt()
    this.draft = draft
    this.live = live
    this.view = this.#look()
    tell(this.#listeners, this.view)
    this.#host.changed(this)
  }

  /** @internal ends every loop over the views */
  close() {
    this.#closed = true
    tell(this.#listeners, this.view)
  }

  /** The first view that fits. @param {(view: View) => boolean} fits @returns {Promise<View>} */
  #when(fits) {
    return new Promise(resolve => {
      const off = this.on(view => {
        if (!fits(view)) return
        resolve(view)
        queueMicrotask(() => off())
      })
    })
  }

  /** @returns {View} */
  #look() {
    const { draft, live } = this
    const { id, kind, phase, since, attempts, operation, problem, needs } = draft
    const over = settled(draft)
    const at = over ? undefined : live.nextCheckAt
    return {
      id, kind, phase, since, attempts, operation, problem,
      settled: over,
      recorded: operation || phase == 'conflict' ? 'yes' : draft.unknown || draft.open ? 'unknown' : 'no',
      result: phase == 'done' ? operation?.result : undefined,
      error: phase == 'failed' ? operation?.error : undefined,
      progress: over ? undefined : operation?.progress,
      nextCheckAt: at,
      nextCheckIn: at && Math.max(0, at - this.#host.now()),
      connection: live.connection,
      needs,
      abandoning: !over && !!draft.abandon,
      durable: this.#host.durable,
    }
  }
}
