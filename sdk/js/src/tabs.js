/**
 * What the tabs of one browser settle among themselves: who works on a draft, and who may keep
 * an event stream open.
 *
 * One tab works on a draft; the others watch. Web Locks say who, and pass the work on at once
 * when a tab dies. Where they do not exist (old browsers, pages without HTTPS), the lease in
 * the draft alone says it: it is taken inside {@link Store.update}, so it is atomic.
 *
 * The lease is there in both cases. Every transmission is marked in the store first, under the
 * lease, so a tab that was replaced while it slept cannot send.
 *
 * Over HTTP/1.1 a browser opens six connections to a host, for all tabs together, and an event
 * stream keeps one. So the tabs of an origin share {@link PERMITS}, whatever their account; a
 * tab without one looks up. A permit is a Web Lock, so the browser takes it from a tab that is
 * gone. Without locks only a tab that is looked at has streams: those are few, and that a tab
 * is hidden is told at once, while timers of hidden tabs come late, and leases with them.
 *
 * @module
 */

import { pause } from './clock.js'

/** @import {Clock, Draft, Env} from './types.js' */
/** @import {Bell} from './clock.js' */

/** Event streams at once, in all tabs: half of the connections, so that the others can always ask. */
const PERMITS = 3

/** May this tab take the lease? @param {Draft} draft @param {string} tab @param {number} now @param {number} longest */
export function free(draft, tab, now, longest) {
  const { lease } = draft
  // A lease that ends too far ahead was written under another clock.
  return !lease || lease.tab == tab || lease.until <= now || lease.until > now + longest
}

/**
 * @param {Env} env @param {string} scope @param {Clock} clock
 * @param {(message: any) => void} hear called with what other tabs say
 * @param {number} [streams] how many event streams this tab may have
 */
export function createTabs(env, scope, clock, hear, streams = env.locks ? 2 : 1) {
  /** @type {BroadcastChannel|undefined} */
  let channel

  return {
    /** Starts to listen. */
    open() {
      if (!env.BroadcastChannel || channel) return
      channel = new env.BroadcastChannel(`semel ${scope}`)
      channel.onmessage = event => hear(event.data)
    },

    close() {
      channel?.close()
      channel = undefined
    },

    /** Tells every other tab. @param {any} message */
    tell(message) {
      channel?.postMessage(message)
    },

    /**
     * Runs `work` if there is a permit for an event stream, and holds that until it is over.
     *
     * @param {{signal: AbortSignal, abort: () => void}} link aborted by `work` when it is over,
     *   and here when it must be
     * @param {() => Promise<void>} work
     */
    async permit({ signal, abort }, work) {
      if (streams < 1) return
      streams--
      if (env.locks) {
        for (let i = PERMITS; i-- && !signal.aborted;) {
          await env.locks.request(`semel stream ${i}`, { ifAvailable: true }, lock => lock && !signal.aborted && work())
            .catch(abort)
        }
      } else if (!env.hidden?.()) {
        env.window?.addEventListener('visibilitychange', abort, { signal })
        await work()
      }
      streams++
    },

    /**
     * Waits until this tab may work on a draft, then runs `work` once. Its signal aborts when
     * the right is lost. Resolves when the work is over, or given up.
     *
     * @param {string} id
     * @param {{signal: AbortSignal, abort: () => void}} link aborted by the caller to give up, and here when it is over
     * @param {boolean} steal take it from a tab that gives no sign of life
     * @param {(signal: AbortSignal, give: boolean) => Promise<boolean>} work is called with
     *   whether a lock already gave the right; returns false when it was not to be had
     * @param {Bell} bell @param {number} again how often to try, where there are no locks
     */
    async hold(id, { signal, abort }, steal, work, bell, again) {
      try {
        if (env.locks) {
          /** @type {LockOptions} */
          await env.locks.request(`semel ${scope} ${id}`, steal ? { steal } : { signal }, () => work(signal, true))
        } else {
          while (!signal.aborted && !await work(signal, false)) {
            await pause(clock, again * (0.5 + clock.random()), 'lease', signal, bell)
          }
        }
      } catch (error) {
        // AbortError: we gave up waiting, or another tab took the lock.
        if (/** @type {any} */ (error)?.name != 'AbortError') throw error
      } finally {
        abort()
      }
    },
  }
}
