/**
 * Keeps the drafts of one account in this tab in step: with the store, with the other tabs,
 * and with whoever works on them.
 *
 * @module
 */

import { backoff, linked, pause, systemClock } from './clock.js'
import { prune, settled } from './drafts.js'
import { createHttp } from './http.js'
import { newId } from './ids.js'
import { OperationHandle, tell } from './operation.js'
import { abandon, mine, recover } from './rules.js'
import { openStore } from './storage.js'
import { createTabs, free } from './tabs.js'
import { leaseLost, work } from './work.js'

/** @import {Box, ClientOptions, Draft, Env, Live, Store, Timeouts} from './types.js' */

/** @typedef {ReturnType<typeof createKeeper>} Keeper */

const EVENTS = ['online', 'pageshow', 'pagehide', 'visibilitychange', 'freeze', 'resume']

/** @param {ClientOptions} options @param {string} server @param {Env} env */
export function createKeeper(options, server, env) {
  const { clock = systemClock, keep = 20, storage } = options
  const scope = `${server} ${options.account}`
  /** Random; names this tab in leases. */
  const tab = newId()
  /** @type {Required<Timeouts>} */
  const times = {
    answer: 20_000, silence: 20_000, backoff: 500, cap: 30_000, poll: 5_000, lease: 15_000,
    sync: env.BroadcastChannel ? 5_000 : 1_000,
    ...options.timeouts,
  }
  const http = createHttp(options, server, clock, times.answer)
  const tabs = createTabs(env, scope, clock, hear, options.streams)
  /** @type {Map<string, OperationHandle>} */
  const ops = new Map()
  /** @type {Set<(op: OperationHandle) => void>} */
  const listeners = new Set()
  /** Aborts when this tab must let go of everything. */
  let life = new AbortController()
  let awake = false
  let durable = true
  /** @type {Promise<Store>|undefined} */
  let opened
  /** @type {AbortController|undefined} */
  let syncing

  const keeper = {
    env, clock, keep, tab, times, http, permit: tabs.permit, listeners, store, update, wake, close, check, adopt, show, commit,
  }
  return keeper

  /** @returns {Promise<Store>} */
  async function store() {
    opened ??= Promise.resolve(storage ?? openStore(env, clock))
    try {
      const store = await opened
      durable = store.durable
      return store
    } catch (error) {
      opened = undefined
      throw error
    }
  }

  /**
   * @template T
   * @param {(box: Box) => T} change @returns {Promise<T>}
   */
  async function update(change) {
    return (await store()).update(scope, change)
  }

  /** Begins to listen to the other tabs and to what happens to the page. */
  function wake() {
    if (awake) return
    awake = true
    if (life.signal.aborted) life = new AbortController()
    tabs.open()
    // Captured: some of them are the document's, and come by here first.
    for (const name of EVENTS) env.window?.addEventListener(name, happen, true)
  }

  /** Lets go of whatever would keep the page out of the back/forward cache. */
  async function suspend() {
    awake = false
    life.abort()
    tabs.close()
    await Promise.all([...ops.values()].map(op => op.running))
    if (!awake) opened?.then(store => store.close(), () => {})
  }

  /** For good. */
  function close() {
    for (const name of EVENTS) env.window?.removeEventListener(name, happen, true)
    for (const op of ops.values()) op.close()
    return suspend()
  }

  /** @param {Event} event */
  function happen({ type }) {
    if (type == 'pagehide' || type == 'freeze') suspend()
    else if (type != 'visibilitychange' || !env.hidden?.()) {
      wake()
      read().then(check)
    }
  }

  /** Everybody who waits to try again tries now, in whichever tab the work is. */
  function check() {
    for (const op of ops.values()) if (!settled(op.draft)) nudge(op)
  }

  /** @param {OperationHandle} op */
  function nudge(op) {
    op.bell.ring()
    if (!op.working) tabs.tell({ check: op.id })
  }

  /**
   * The handle of a draft; this tab waits for the work on it, unless it is settled.
   *
   * @param {Draft} draft
   */
  function adopt(draft) {
    let op = ops.get(draft.id)
    if (!op) {
      op = new OperationHandle(draft, {
        durable, now: clock.now, check: nudge, abandon: giveUp, changed: op => tell(listeners, op),
      })
      ops.set(draft.id, op)
      op.show(draft)
    } else if (draft.n > op.draft.n) op.show(draft)
    attend(op)
    return op
  }

  /** Shows it here and in the other tabs. @param {OperationHandle} op @param {Draft} draft @param {Live} [live] */
  function show(op, draft, live = op.live) {
    op.show(draft, live)
    // The others have the parameters, or read them from the store.
    tabs.tell({ draft: { ...draft, params: '' }, live })
  }

  /** @param {{check?: string, draft?: Draft, live: Live}} message */
  function hear({ check, draft, live }) {
    const op = ops.get(check ?? draft?.id ?? '')
    if (check) op?.bell.ring()
    if (!draft) return
    if (!op) {
      if (!settled(draft)) read()
    } else if (draft.n >= op.draft.n) {
      op.show({ ...draft, params: op.draft.params }, op.working ? op.live : live)
      if (settled(draft)) op.bell.ring()
      attend(op)
    }
  }

  /** Takes in what the store knows, if it answers. */
  async function read() {
    for (const draft of await update(box => box.all()).catch(() => [])) {
      if (settled(draft) && !ops.has(draft.id)) continue
      const op = adopt(draft)
      const dead = draft.lease && draft.lease.until <= clock.now()
      if (dead && !op.working && !env.hidden?.()) op.seize?.()
    }
  }

  /**
   * Changes the stored draft and shows it. The newer of the stored one and ours is changed,
   * so that neither another tab's word nor a cleared storage loses anything.
   *
   * @param {OperationHandle} op @param {(draft: Draft) => Draft} change
   * @param {boolean} [must] reject when it can't be stored
   * @param {boolean} [anyone] without holding the lease
   */
  async function commit(op, change, must, anyone) {
    /** @param {Draft} base */
    const changed = base => {
      const draft = change(base)
      return draft == base ? base : { ...draft, n: base.n + 1 }
    }
    /** @type {Draft} */
    let draft
    try {
      draft = await update(box => {
        const stored = box.get(op.id)
        const base = stored && stored.n > op.draft.n ? stored : op.draft
        if (!anyone && base.lease?.tab != tab) throw leaseLost
        const after = changed(base)
        if (after != stored) box.put(after)
        if (settled(after)) prune(box, keep)
        return after
      })
    } catch (error) {
      if (must || error == leaseLost) throw error
      // The answer is known, though not stored: after a reload it is asked for again.
      draft = changed(op.draft)
    }
    show(op, draft)
  }

  /** @param {OperationHandle} op */
  async function giveUp(op) {
    wake()
    await commit(op, draft => abandon(draft, clock.now()), true, true)
    attend(op)
    nudge(op)
  }

  /** @param {OperationHandle} op */
  function attend(op) {
    const now = life
    if (!awake || op.attended == now || settled(op.draft)) return
    op.attended = now
    op.running = op.running.then(() => wait(op, now))
  }

  /**
   * Waits for the work on an operation and does it, until it is settled.
   *
   * @param {OperationHandle} op @param {AbortController} life
   */
  async function wait(op, life) {
    const { signal } = life
    let failures = 0
    let steal = false
    while (!signal.aborted && !settled(op.draft)) {
      sync(life)
      const link = linked(signal)
      const take = steal
      /** Whether we had the right. @type {Promise<boolean>} */
      let worked = Promise.resolve(false)
      steal = false
      op.seize = () => {
        steal = true
        link.abort()
      }
      try {
        await tabs.hold(op.id, link, take, (signal, given) => {
          op.seize = undefined
          return worked = turn(op, signal, given)
        }, op.bell, times.sync)
        failures = 0
      } catch (error) {
        op.show({ ...op.draft, problem: { ...mine('storage-unavailable', 0), detail: `${error}` } })
        await pause(clock, backoff(clock, ++failures, times.backoff, times.cap), 'retry', signal, op.bell)
      }
      // A lock that was stolen is gone before the work has noticed.
      const had = await worked.catch(() => false)
      op.seize = undefined
      // Unless somebody signed in since that was asked.
      if (had && op.draft.needs && op.bell.count == op.asked) await pause(clock, Infinity, 'sign-in', signal, op.bell)
    }
    if (op.attended == life) op.attended = undefined
  }

  /**
   * Takes the lease and works. False when another tab has the lease.
   *
   * @param {OperationHandle} op @param {AbortSignal} signal
   * @param {boolean} given a lock says that nobody else works on it
   */
  async function turn(op, signal, given) {
    let ours = false
    await commit(op, draft => {
      const now = clock.now()
      ours = !settled(draft) && !signal.aborted && (given || free(draft, tab, now, times.answer + 2 * times.lease))
      return ours ? { ...recover(draft, now), lease: { tab, until: now + times.lease } } : draft
    }, true, true)
    if (!ours) return settled(op.draft)
    op.working = true
    const link = linked(signal)
    beat(op, link)
    try {
      await work(op, keeper, link.signal)
    } catch (error) {
      if (error != leaseLost) throw error
    } finally {
      link.abort()
      op.working = false
      await commit(op, draft => draft.lease?.tab == tab ? { ...draft, lease: undefined } : draft, false, true)
    }
    return true
  }

  /** Gives signs of life while the work goes on. @param {OperationHandle} op @param {ReturnType<typeof linked>} link */
  async function beat(op, link) {
    while (await pause(clock, times.lease / 3, 'beat', link.signal) == 'time') {
      await commit(op, draft => {
        const until = Math.max(draft.lease?.until ?? 0, clock.now() + times.lease)
        return { ...draft, lease: { tab, until } }
      }).catch(link.abort)
    }
  }

  /** Reads the store now and then while another tab does work that is shown here. @param {AbortController} life */
  async function sync(life) {
    if (syncing == life) return
    syncing = life
    while ([...ops.values()].some(op => !op.working && !settled(op.draft))) {
      if (await pause(clock, times.sync, 'sync', life.signal) == 'abort') break
      await read()
    }
    if (syncing == life) syncing = undefined
  }
}
