/**
 * A browser for tests: a profile with storage, locks and channels, tabs that can be killed or
 * frozen, and a clock in which nothing happens until it is told to.
 */

import { EventEmitter, once } from 'node:events'
import { IDBFactory, IDBKeyRange } from 'fake-indexeddb'
import { createClient } from '../../src/index.js'

globalThis.IDBKeyRange ??= IDBKeyRange

/** Timers wait for `fire`, or are let through at once when their label is in `auto`. */
export class FakeClock {
  time = Date.now()
  auto = new Set(['retry', 'reconnect', 'poll'])
  chance = () => 0.5
  timers = new Map()
  #seen = new EventEmitter().setMaxListeners(0)
  #next = 0

  now = () => this.time
  random = () => this.chance()

  setTimeout = (run, ms, label) => {
    const timer = { run, ms, label, id: ++this.#next }
    this.timers.set(timer.id, timer)
    // Without moving the clock: the others' leases must not end because this one waited.
    if (this.auto.has(label)) setImmediate(() => this.timers.delete(timer.id) && run())
    this.#seen.emit('timer', timer)
    return timer.id
  }

  clearTimeout = id => this.timers.delete(id)

  #run(timer) {
    if (!this.timers.delete(timer.id)) return
    this.time += timer.ms
    timer.run()
  }

  /** Waits until a timer of this label is set, and returns it. */
  async timer(label) {
    for (;;) {
      const found = [...this.timers.values()].find(t => t.label == label)
      if (found) return found
      await once(this.#seen, 'timer')
    }
  }

  /** Waits for a timer of this label and lets its time pass. */
  async fire(label) {
    const timer = await this.timer(label)
    this.#run(timer)
    return timer
  }
}

/** localStorage. */
export class FakeStorage {
  #items = new Map()
  full = false
  get length() {
    return this.#items.size
  }
  key(i) {
    return [...this.#items.keys()][i] ?? null
  }
  getItem(key) {
    return this.#items.get(key) ?? null
  }
  setItem(key, value) {
    if (this.full) throw new DOMException('full', 'QuotaExceededError')
    this.#items.set(key, `${value}`)
  }
  removeItem(key) {
    this.#items.delete(key)
  }
}

/** Web Locks, exclusive only: what the standard says about queue, steal, signal and ifAvailable. */
export class FakeLocks {
  #held = new Map()
  #queue = []

  /** Each tab has its own view, so that a tab can die. */
  forTab(tab) {
    return {
      query: async () => ({ held: [...this.#held.values()].map(({ name }) => ({ name })) }),
      request: (name, options, work) => new Promise((resolve, reject) => {
        if (!work) [options, work] = [{}, options]
        const entry = { tab, name, work, resolve, reject }
        if (options.ifAvailable && (options.signal || options.steal)) {
          return reject(new DOMException('not together', 'NotSupportedError'))
        }
        if (options.ifAvailable && (this.#held.has(name) || this.#queue.some(e => e.name == name))) {
          return Promise.resolve(null).then(work).then(resolve, reject)
        }
        if (options.steal) {
          const held = this.#held.get(name)
          held?.reject(new DOMException('stolen', 'AbortError'))
          this.#grant(entry)
          return
        }
        options.signal?.addEventListener('abort', () => {
          const i = this.#queue.indexOf(entry)
          if (i < 0) return
          this.#queue.splice(i, 1)
          reject(new DOMException('aborted', 'AbortError'))
        })
        if (options.signal?.aborted) return reject(new DOMException('aborted', 'AbortError'))
        this.#queue.push(entry)
        this.#pump(name)
      }),
    }
  }

  /** What the browser does when a tab's process is gone. */
  kill(tab) {
    this.#queue = this.#queue.filter(e => e.tab != tab)
    for (const [name, entry] of this.#held) {
      if (entry.tab == tab) this.#release(entry, name)
    }
  }

  #pump(name) {
    if (this.#held.has(name)) return
    const i = this.#queue.findIndex(e => e.name == name)
    if (i >= 0) this.#grant(this.#queue.splice(i, 1)[0])
  }

  #grant(entry) {
    this.#held.set(entry.name, entry)
    Promise.resolve().then(() => entry.work({ name: entry.name })).then(entry.resolve, entry.reject)
      .finally(() => this.#release(entry, entry.name))
  }

  #release(entry, name) {
    if (this.#held.get(name) != entry) return
    this.#held.delete(name)
    this.#pump(name)
  }
}

/** BroadcastChannel within one profile, as one tab sees it. */
const channels = (all, tab) => class FakeChannel {
  onmessage = null
  constructor(name) {
    this.name = name
    this.tab = tab
    all.add(this)
  }
  postMessage(data) {
    if (tab.dead.signal.aborted) return
    const copy = structuredClone(data)
    for (const other of all) {
      if (other == this || other.name != this.name) continue
      queueMicrotask(() => all.has(other) && !other.tab.frozen && other.onmessage?.({ data: copy }))
    }
  }
  close() {
    all.delete(this)
  }
}

/** IndexedDB as one tab sees it: gone with the tab. */
const databases = (factory, tab) => ({
  open(...args) {
    tab.dead.signal.throwIfAborted()
    const request = factory.open(...args)
    request.addEventListener('success', () => tab.databases.push(request.result))
    return request
  },
})

/** localStorage as one tab sees it. */
const storages = (storage, tab) => new Proxy(storage, {
  get(target, name) {
    tab.dead.signal.throwIfAborted()
    const value = Reflect.get(target, name, target)
    return typeof value == 'function' ? value.bind(target) : value
  },
})

/**
 * One browser profile.
 *
 * @param {{indexedDB?: boolean, locks?: boolean, channel?: boolean, localStorage?: boolean}} [parts]
 */
export class Profile {
  constructor(t, server, parts = {}) {
    const { indexedDB = true, locks = true, channel = true, localStorage = true } = parts
    this.t = t
    this.server = server
    this.indexedDB = indexedDB ? new IDBFactory() : undefined
    this.localStorage = localStorage ? new FakeStorage() : undefined
    this.locks = locks ? new FakeLocks() : undefined
    this.channels = channel ? new Set() : undefined
    this.clock = new FakeClock()
  }

  /** Opens a tab. @param {object} [options] of the client */
  tab(options = {}) {
    const tab = new Tab(this, options)
    this.t.after(() => tab.kill())
    return tab
  }
}

class Tab {
  dead = new AbortController()
  frozen = false
  hidden = false
  offline = false
  databases = []
  window = new EventTarget()

  constructor(profile, options) {
    this.profile = profile
    // A dead tab's requests break, and it sends no more.
    const send = (url, init) => {
      this.dead.signal.throwIfAborted()
      const signal = init.signal ? AbortSignal.any([init.signal, this.dead.signal]) : this.dead.signal
      return fetch(url, { ...init, signal })
    }
    this.env = {
      indexedDB: profile.indexedDB && databases(profile.indexedDB, this),
      localStorage: profile.localStorage && storages(profile.localStorage, this),
      locks: profile.locks?.forTab(this),
      BroadcastChannel: profile.channels && channels(profile.channels, this),
      offline: () => this.offline,
      hidden: () => this.hidden,
      window: this.window,
    }
    this.clock = options.clock ?? profile.clock
    this.semel = createClient({
      server: profile.server.url, account: 'acme', token: 'token-acme', fetch: send, env: this.env,
      clock: this.clock, ...options,
    })
  }

  /** The process is gone: no more requests, writes or words; locks are released. */
  kill() {
    if (this.dead.signal.aborted) return
    this.dead.abort()
    for (const db of this.databases) db.close()
    this.semel.close().catch(() => {})
    this.profile.locks?.kill(this)
  }

  event(name) {
    this.window.dispatchEvent(new Event(name))
  }
}

/** Resolves with the first view that fits. */
export function view(op, fits) {
  const test = typeof fits == 'string' ? v => v.phase == fits : fits
  return new Promise(resolve => {
    const off = op.on(v => {
      if (!test(v)) return
      queueMicrotask(() => off())
      resolve(v)
    })
  })
}

/** A promise and its resolver. */
export function gate() {
  let open
  const promise = new Promise(resolve => open = resolve)
  return { promise, open }
}

export const MENU = { title: '本周菜单', days: [{ day: '周一', dishes: ['番茄炒蛋', '米饭'] }] }
