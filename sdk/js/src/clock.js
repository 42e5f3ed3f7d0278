/**
 * Waiting: for a time, for a bell, or for the end of the work.
 *
 * @module
 */

/** @import {Clock} from './types.js' */

/** @type {Clock} */
export const systemClock = {
  now: () => Date.now(),
  // A longer delay than 31 bits would fire at once.
  setTimeout: (run, ms) => setTimeout(run, Math.min(ms, 0x7fffffff)),
  clearTimeout: timer => clearTimeout(timer),
  random: () => Math.random(),
}

/** Wakes whoever waits on it: the network is back, the page is looked at, somebody pressed. */
export class Bell extends EventTarget {
  /** How often it rang. */
  count = 0

  ring() {
    this.count++
    this.dispatchEvent(new Event('ring'))
  }
}

/**
 * Resolves after `ms` milliseconds, when the bell rings, or when the signal aborts,
 * whichever comes first, and says which.
 *
 * @param {Clock} clock
 * @param {number} ms Infinity: for the bell alone, or as long as the clock can wait
 * @param {string} label names the wait, for tests
 * @param {AbortSignal} signal
 * @param {Bell} [bell]
 * @returns {Promise<'time'|'bell'|'abort'>}
 */
export function pause(clock, ms, label, signal, bell) {
  return new Promise(resolve => {
    if (signal.aborted) return resolve('abort')
    const over = new AbortController()
    /** @param {'time'|'bell'|'abort'} why */
    const end = why => {
      over.abort()
      clock.clearTimeout(timer)
      resolve(why)
    }
    // No more than 31 bits here too: the clock may be the page's, with a plain setTimeout.
    const timer = clock.setTimeout(() => end('time'), Math.min(ms, 0x7fffffff), label)
    bell?.addEventListener('ring', () => end('bell'), over)
    signal.addEventListener('abort', () => end('abort'), over)
  })
}

/**
 * Exponential backoff with full jitter: anything from 0 to the bound, so that many browsers
 * which lost the same server do not come back together.
 *
 * @param {Clock} clock @param {number} failures in a row, from 1
 * @param {number} base @param {number} cap
 */
export function backoff(clock, failures, base, cap) {
  return clock.random() * Math.min(cap, base * 2 ** Math.min(failures - 1, 30))
}

/**
 * Returns a controller that aborts with `signal`, and on its own.
 *
 * @param {AbortSignal} [signal]
 * @returns {{signal: AbortSignal, abort: () => void}} call `abort` when done: it also lets go of `signal`
 */
export function linked(signal) {
  const controller = new AbortController()
  const abort = () => controller.abort()
  if (signal?.aborted) abort()
  signal?.addEventListener('abort', abort, controller)
  return { signal: controller.signal, abort }
}
