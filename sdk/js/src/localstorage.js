/**
 * Drafts in localStorage, for browsers without IndexedDB. Loaded only there.
 *
 * localStorage has no transactions, and what one process writes reaches another one a little
 * later. So a change needs two things: that nobody else changes meanwhile, and that what the
 * last one wrote has come here.
 *
 * - With Web Locks: one lock for the change; and every tab holds a lock whose *name* is the
 *   number of its last change. Locks are ordered, so whoever is next sees that number and
 *   waits until its own localStorage has come so far.
 * - Without: a timed lock (Fischer's). Write your mark where there is none, let every other
 *   tab's write arrive, and go in if the mark is still yours.
 *
 * @module
 */

/** @import {Box, Clock, Draft, Store} from './types.js' */

/**
 * @typedef {<T>(drafts: Draft[], change: (box: Box) => T, write: (id: string, draft?: Draft) => void) => T} Within
 */

/** How long a write may need to reach another tab, where there are no Web Locks. */
const SETTLE = 100
/** A mark this old was left by a tab that died. */
const STALE = 3000
/** How often it is looked whether the last change has come. */
const LOOKS = 300

/**
 * @param {Storage} storage @param {string} name @param {Within} within
 * @param {LockManager|undefined} locks @param {Clock} clock
 * @returns {Store}
 */
export function localStore(storage, name, within, locks, clock) {
  const MUTEX = `${name} lock`
  const COUNT = `${name} count`
  let letGo = () => {}

  /** @param {number} ms */
  const wait = ms => new Promise(resolve => clock.setTimeout(() => resolve(undefined), ms, 'mutex'))
  /** How many changes have come here. */
  const count = () => +(storage.getItem(COUNT) ?? 0)

  /** Waits for what the other tabs have written. @param {LockManager} locks */
  async function catchUp(locks) {
    const { held = [] } = await locks.query()
    const last = Math.max(0, ...held.map(lock => (lock.name?.startsWith(COUNT) ? +lock.name.slice(COUNT.length) : 0)))
    for (let i = 0; count() < last; i++) {
      if (i == LOOKS) throw Error('localStorage does not keep up')
      await wait(10)
    }
  }

  /** Tells the next one how far to wait. @param {LockManager} locks */
  async function announce(locks) {
    const before = letGo
    await new Promise((resolve, reject) => {
      locks.request(`${COUNT} ${count()}`, { mode: 'shared' }, () => new Promise(over => {
        letGo = () => over(undefined)
        resolve(undefined)
      })).catch(reject)
    })
    before()
  }

  /**
   * @template T
   * @param {() => T} run @returns {Promise<T>}
   */
  async function alone(run) {
    if (locks) {
      return locks.request(MUTEX, async () => {
        await catchUp(locks)
        const before = count()
        const result = run()
        if (count() != before) await announce(locks)
        return result
      })
    }
    const mark = crypto.getRandomValues(new Uint32Array(4)).join()
    for (;;) {
      const [, since] = (storage.getItem(MUTEX) ?? '').split(' ')
      const age = clock.now() - +since
      if (!since || age > STALE || age < 0) {
        storage.setItem(MUTEX, `${mark} ${clock.now()}`)
        await wait(SETTLE)
        if (storage.getItem(MUTEX)?.startsWith(mark)) break
      }
      await wait(SETTLE * clock.random())
    }
    try {
      return run()
    } finally {
      storage.removeItem(MUTEX)
    }
  }

  return {
    name: 'localstorage',
    durable: true,
    update: (scope, change) => alone(() => {
      const prefix = `${name} ${JSON.stringify(scope)} `
      const keys = Array.from({ length: storage.length }, (_, i) => storage.key(i) ?? '')
      const drafts = keys.filter(key => key.startsWith(prefix)).map(key => JSON.parse(storage.getItem(key) ?? ''))
      const before = count()
      return within(drafts, change, (id, draft) => {
        if (draft) storage.setItem(prefix + id, JSON.stringify(draft))
        else storage.removeItem(prefix + id)
        // After it: whoever sees the number sees the change.
        storage.setItem(COUNT, `${before + 1}`)
      })
    }),
    close() {
      letGo()
      letGo = () => {}
    },
  }
}
