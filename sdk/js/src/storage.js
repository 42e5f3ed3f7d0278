/**
 * Where drafts are kept: IndexedDB; where that is missing, localStorage; where that is missing
 * too, this tab's memory. All three keep the same promise, {@link Store.update}.
 *
 * The choice sticks: with another, empty store a second press would become a second operation.
 * So where IndexedDB was ever used and does not open, `update` rejects, and nothing is sent.
 *
 * @module
 */

/** @import {Box, Clock, Draft, Env, Store} from './types.js' */

const NAME = 'semel'
const OPEN_WITHIN = 5000

/**
 * @param {Env} env @param {Clock} clock
 * @returns {Promise<Store>}
 */
export async function openStore(env, clock) {
  const flat = usable(env.localStorage)
  const chosen = flat?.getItem(NAME)
  if (env.indexedDB && chosen != 'localstorage') {
    const store = indexedDBStore(env.indexedDB, clock)
    try {
      await store.update('', () => {})
      flat?.setItem(NAME, store.name)
      return store
    } catch (failure) {
      if (chosen) throw failure
    }
  }
  if (!flat) return memoryStore()
  // Few browsers need it, so few load it.
  const { localStore } = await import('./localstorage.js')
  flat.setItem(NAME, 'localstorage')
  return localStore(flat, NAME, within, env.locks, clock)
}

/** @param {Storage|undefined} storage one that can really be written */
function usable(storage) {
  try {
    storage?.setItem(NAME, storage.getItem(NAME) ?? '')
    return storage
  } catch {
    return undefined
  }
}

/**
 * Runs a change over drafts that were read, and tells what it wrote (undefined: removed).
 *
 * @template T
 * @param {Draft[]} drafts @param {(box: Box) => T} change
 * @param {(id: string, draft?: Draft) => void} write
 * @returns {T}
 */
function within(drafts, change, write) {
  const held = new Map(drafts.map(d => [d.id, d]))
  /** @type {Map<string, Draft|undefined>} */
  const written = new Map()
  const result = change({
    all: () => [...held.values()],
    get: id => held.get(id),
    put: draft => {
      held.set(draft.id, draft)
      written.set(draft.id, draft)
    },
    remove: id => {
      held.delete(id)
      written.set(id, undefined)
    },
  })
  written.forEach((draft, id) => write(id, draft))
  return result
}

/** @param {IDBFactory} factory @param {Clock} clock @returns {Store} */
function indexedDBStore(factory, clock) {
  /** @type {Promise<IDBDatabase>|undefined} */
  let opened

  /** @returns {Promise<IDBDatabase>} */
  const open = () => opened ??= new Promise((resolve, reject) => {
    /** @param {any} error */
    const fail = error => {
      clock.clearTimeout(timer)
      opened = undefined
      reject(error)
    }
    // Some browsers never answer when their database is in trouble.
    const timer = clock.setTimeout(() => fail(Error('no answer')), OPEN_WITHIN, 'open')
    const request = factory.open(NAME, 1)
    request.onupgradeneeded = () => request.result.createObjectStore('drafts')
    request.onerror = () => fail(request.error)
    request.onsuccess = () => {
      clock.clearTimeout(timer)
      const db = request.result
      db.onclose = () => opened = undefined
      db.onversionchange = close
      resolve(db)
    }
  })

  function close() {
    opened?.then(db => db.close(), () => {})
    opened = undefined
  }

  /**
   * @template T
   * @param {string} scope @param {(box: Box) => T} change @returns {Promise<T>}
   */
  async function update(scope, change) {
    const db = await open()
    return new Promise((resolve, reject) => {
      // Strict: a draft must outlive a power cut, since what was sent cannot be unsent.
      const transaction = db.transaction('drafts', 'readwrite', { durability: 'strict' })
      const drafts = transaction.objectStore('drafts')
      /** @type {T} */
      let result
      /** @type {any} */
      let thrown
      const request = drafts.getAll(IDBKeyRange.bound([scope], [scope, []]))
      request.onsuccess = () => {
        try {
          result = within(request.result, change, (id, draft) =>
            draft ? drafts.put(draft, [scope, id]) : drafts.delete([scope, id]))
        } catch (error) {
          thrown = error
          transaction.abort()
        }
      }
      transaction.oncomplete = () => resolve(result)
      transaction.onabort = () => reject(thrown ?? transaction.error)
    })
  }

  return {
    name: 'indexeddb',
    durable: true,
    // A connection that broke is of no use: the next call opens a new one.
    update: (scope, change) => update(scope, change).catch(error => {
      close()
      throw error
    }),
    close,
  }
}

/** For this tab, until it is closed. @returns {Store} */
export function memoryStore() {
  /** @type {Map<string, Map<string, Draft>>} */
  const scopes = new Map()
  return {
    name: 'memory',
    durable: false,
    async update(scope, change) {
      const drafts = scopes.get(scope) ?? new Map()
      scopes.set(scope, drafts)
      return within([...drafts.values()], change, (id, draft) =>
        draft ? drafts.set(id, draft) : drafts.delete(id))
    },
    close() {},
  }
}
