/**
 * Asks again and again: often while something is going on, seldom otherwise, never while
 * nobody looks.
 *
 * @module
 */

/**
 * @param {() => Promise<void>} ask must not reject
 * @param {() => number} pause how long to wait, in milliseconds
 */
export function createPulse(ask, pause) {
  /** @type {any} */
  let timer
  let asking = false
  let wanted = false

  async function beat() {
    clearTimeout(timer)
    if (asking) {
      wanted = true
      return
    }
    if (document.visibilityState == 'hidden') return
    asking = true
    wanted = false
    await ask()
    asking = false
    if (wanted) beat()
    else timer = setTimeout(beat, pause())
  }

  document.addEventListener('visibilitychange', () => document.visibilityState == 'visible' && beat())
  addEventListener('pageshow', event => event.persisted && beat())
  addEventListener('online', beat)

  /** Ask now, or once more when the answer under way is there. */
  return { beat }
}
