/**
 * The tasks of this page, over the browser package: which one is shown, which there are, and
 * what a press of the button means.
 *
 * @module
 */

import { createClient } from '/sdk/index.js'
import { KIND, now, operation } from './server.js'
import { isMenu, same } from './menu.js'

/** @import {OperationHandle, View, Operation} from '/sdk/index.js' */

/** @type {Record<string, View['phase']>} */
const PHASES = { accepted: 'accepted', processing: 'processing', succeeded: 'done', failed: 'failed',
  needs_reconciliation: 'needs_reconciliation', abandoned: 'abandoned' }

/**
 * One task, as the page shows it.
 *
 * @typedef {object} Task
 * @property {string} id
 * @property {View} view
 * @property {import('./menu.js').Menu} [menu] where it is known
 * @property {OperationHandle} [handle] where this browser asked for it
 */

/** There may be thousands, and they are asked for with every drawing. @type {WeakMap<Operation, View>} */
const views = new WeakMap()

/** A view of what only the server knows: from another browser, or from long ago. @param {Operation} op @returns {View} */
function told(op) {
  const view = views.get(op) ?? look(op)
  views.set(op, view)
  return view
}

/** @param {Operation} op @returns {View} */
const look = op => ({
  id: op.key.id, kind: KIND, phase: PHASES[op.state] ?? 'processing', attempts: op.attempts ?? 0, operation: op, recorded: 'yes',
  settled: ['succeeded', 'failed', 'abandoned'].includes(op.state), since: Date.parse(op.updated_at ?? ''), connection: 'waiting',
  result: op.state == 'succeeded' ? op.result : undefined, error: op.state == 'failed' ? op.error : undefined,
  progress: op.progress, abandoning: false, durable: true,
})

/** When an ID was made: a UUIDv7 begins with it. @param {string} id */
export const dated = id => parseInt(id.replace('-', '').slice(0, 12), 16)

/**
 * @param {string} account @param {typeof fetch} fetch @param {import('./notes.js').Notes} notes
 */
export function createWork(account, fetch, notes) {
  const client = createClient({ account, fetch, streams: 1 })
  /** Those this browser asked for, as far as this page knows them. @type {Map<string, OperationHandle>} */
  const handles = new Map()
  /** What the server has told. @type {Map<string, Operation>} */
  const known = new Map()
  /** When each was recorded. @type {Map<string, number>} */
  const births = new Map()
  /** Those that are shown in the list, newest first. @type {string[]} */
  let listed = []
  /** @type {string|undefined} */
  let next
  /** @type {string|undefined} */
  let shown
  const listeners = new Set()
  /** @param {boolean} [moved] a task itself has moved */
  const tell = (moved = false) => listeners.forEach(listener => listener(moved))

  client.on(handle => {
    handles.set(handle.id, handle)
    watch(handle.id, handle.view)
    tell(true)
  })

  /**
   * The account's tasks, page by page. The package asks, so that it knows the server's time
   * before it dates an identity. Undefined: no answer.
   *
   * @param {string} [pageToken]
   */
  const list = pageToken => client.history(KIND, { pageSize: 50, pageToken }).catch(() => undefined)

  /** Notes what this page itself saw, for the timeline. @param {string} id @param {View} view */
  function watch(id, view) {
    const before = notes.seen(id).at(-1)?.[0]
    const see = (/** @type {string} */ what) => notes.see(id, what, now())
    if (view.phase == 'unconfirmed') see('no-answer')
    else if (view.operation && before == 'no-answer') see('found')
    else if (view.operation && !before && !view.settled) see('answered')
    if (view.settled && view.operation && id == shown) see('shown')
  }

  /** @param {string} id @returns {Task|undefined} */
  function task(id) {
    const handle = handles.get(id)
    const op = known.get(id)
    const view = handle?.view ?? (op && told(op))
    const menu = handle?.params ?? op?.params
    return view && { id, view, handle, menu: isMenu(menu) ? menu : undefined }
  }

  const work = {
    client,
    /** @param {(moved: boolean) => void} listener */
    on: listener => listeners.add(listener),
    task,

    /** The task that is shown. */
    get shown() {
      return shown === undefined ? undefined : task(shown)
    },

    /** @param {string} id */
    show(id) {
      shown = id
      const now = task(id)
      if (now) watch(id, now.view)
      work.detail(id)
      tell(true)
    },

    /** Newest first; one that nothing recorded is not a task. @returns {Task[]} */
    tasks() {
      const born = (/** @type {string} */ id) => births.get(id) ?? dated(id)
      // What this browser remembers and is older than the list comes with the rest of the list.
      const end = next === undefined ? 0 : Math.min(...listed.map(born))
      const own = [...handles.values()].filter(h => !listed.includes(h.id) && h.view.phase != 'rejected' && h.view.phase != 'conflict' &&
        (!h.view.settled || born(h.id) >= end))
      return [...own.map(h => h.id), ...listed].map(id => ({ id, born: born(id) })).sort((a, b) => b.born - a.born || (a.id < b.id ? 1 : -1))
        .map(({ id }) => task(id)).filter(found => !!found)
    },

    /** Are there more at the server? */
    get more() {
      return next !== undefined
    },

    /** What was asked for before goes on. Resolves with whether this browser remembers any. */
    async resume() {
      await client.resume()
      const current = await client.current(KIND)
      await work.refresh()
      if (current) handles.set(current.id, current)
      const id = current?.id ?? listed[0]
      if (id) work.show(id)
      if (id && !current) await work.detail(id)
      tell()
      return !!current
    },

    /** Looks the newest tasks up. */
    async refresh() {
      const page = await list()
      if (!page) return
      for (const op of page.operations) learn(op)
      const ids = page.operations.map((/** @type {Operation} */ op) => op.key.id)
      // What was looked up further down stays, if nothing is missing between.
      const joins = page.nextPageToken && ids.some((/** @type {string} */ id) => listed.includes(id))
      const older = joins ? listed.filter(id => !ids.includes(id)) : []
      if (!joins) next = page.nextPageToken
      listed = [...ids, ...older]
      // Those further down that were not settled when they were looked up.
      const open = older.filter(id => !handles.has(id) && known.get(id) && !told(/** @type {Operation} */ (known.get(id))).settled)
      for (const op of await Promise.all(open.slice(0, 20).map(operation))) if (op) learn(op)
      tell()
    },

    /** Looks older ones up. */
    async further() {
      const page = await list(next)
      if (!page) return
      for (const op of page.operations) learn(op)
      listed = [...new Set([...listed, ...page.operations.map((/** @type {Operation} */ op) => op.key.id)])]
      next = page.nextPageToken
      tell()
    },

    /** Looks menu and picture of a task up, where they are not known. @param {string} id */
    async detail(id) {
      const have = known.get(id)
      if (have?.params || !have && handles.get(id)?.view.operation === undefined) return
      const op = await operation(id)
      if (op) {
        learn(op)
        tell()
      }
    },

    /**
     * The button. The same menu as that of the task that is shown is that task; anything else
     * the browser package decides.
     *
     * @param {import('./menu.js').Menu} menu
     * @returns {Promise<'new'|'same'>}
     */
    async ask(menu) {
      const now = work.shown
      const before = new Set([...handles.keys(), ...listed])
      if (now?.menu && same(now.menu) == same(menu) && !now.handle) return 'same'
      if (now?.menu && same(now.menu) == same(menu) && now.view.settled && now.view.phase != 'rejected') return 'same'
      const handle = await client.submit(KIND, menu)
      handles.set(handle.id, handle)
      work.show(handle.id)
      return before.has(handle.id) ? 'same' : 'new'
    },

    /** Once more, on purpose. @param {Task} after */
    async again(after) {
      const handle = await client.submit(KIND, after.menu, { again: after.id })
      handles.set(handle.id, handle)
      work.show(handle.id)
    },
  }
  return work

  /** @param {Operation} op */
  function learn(op) {
    const have = known.get(op.key.id)
    // Lists come without menu and picture; the revision says whether those known still hold.
    if (have && have.revision == op.revision && !op.params) return
    if (op.created_at) births.set(op.key.id, Date.parse(op.created_at))
    known.set(op.key.id, { ...op, params: op.params ?? have?.params, result: op.result ?? (have?.revision == op.revision ? have?.result : undefined) })
  }
}
