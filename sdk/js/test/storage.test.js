import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IDBFactory, IDBKeyRange } from 'fake-indexeddb'
import { memoryStore, openStore } from '../src/storage.js'
import { FakeClock, FakeLocks, FakeStorage } from './support/world.js'

globalThis.IDBKeyRange ??= IDBKeyRange

const draft = (id, more = {}) => ({ id, kind: 'note', n: 1, ...more })

/** One profile's parts, and a store as each tab would open it. */
const WORLDS = {
  indexeddb: () => ({ indexedDB: new IDBFactory(), localStorage: new FakeStorage() }),
  'localstorage with locks': () => ({ localStorage: new FakeStorage(), locks: new FakeLocks().forTab({}) }),
  'localstorage alone': () => ({ localStorage: new FakeStorage() }),
}

function clock() {
  const clock = new FakeClock()
  clock.auto.add('mutex')
  // Fair, and never the same for two.
  let n = 0
  clock.chance = () => (n++ % 10) / 10
  return clock
}

for (const [name, parts] of Object.entries(WORLDS)) {
  test(`changes of many tabs never mix (${name})`, async () => {
    const env = parts()
    const time = clock()
    const tabs = await Promise.all([1, 2, 3, 4].map(() => openStore(env, time)))
    const add = box => box.put(draft('counter', { n: (box.get('counter')?.n ?? 0) + 1 }))
    await Promise.all(tabs.flatMap(tab => [1, 2, 3, 4, 5].map(() => tab.update('a b', add))))
    assert.equal(await tabs[0].update('a b', box => box.get('counter').n), 20)
  })

  test(`scopes are apart, and drafts come back whole (${name})`, async () => {
    const env = parts()
    const store = await openStore(env, clock())
    await store.update('s acme', box => box.put(draft('1', { params: '{"菜":"😀"}' })))
    await store.update('s acme2', box => box.put(draft('2')))
    assert.deepEqual(await store.update('s acme', box => box.all().map(d => d.params)), ['{"菜":"😀"}'])
    assert.deepEqual(await store.update('s', box => box.all()), [])
    const later = await openStore(env, clock())
    assert.equal(await later.update('s acme2', box => box.get('2').id), '2')
    await later.update('s acme2', box => box.remove('2'))
    assert.deepEqual(await store.update('s acme2', box => box.all()), [])
  })

  test(`what is thrown inside changes nothing (${name})`, async () => {
    const store = await openStore(parts(), clock())
    await assert.rejects(store.update('s', box => {
      box.put(draft('1'))
      throw new Error('no')
    }), /no/)
    assert.deepEqual(await store.update('s', box => box.all()), [])
  })

  test(`it opens again by itself (${name})`, async () => {
    const store = await openStore(parts(), clock())
    await store.update('s', box => box.put(draft('1')))
    store.close()
    assert.equal(await store.update('s', box => box.all().length), 1)
  })
}

/** localStorage in several processes: what one writes comes to the others later, in order. */
function processes(n, late) {
  const all = Array.from({ length: n }, () => new FakeStorage())
  return all.map(own => new Proxy(own, {
    get(target, name) {
      const value = Reflect.get(target, name, target)
      if (name != 'setItem' && name != 'removeItem') return typeof value == 'function' ? value.bind(target) : value
      return (...args) => {
        value.apply(target, args)
        let turns = late
        const arrive = () => {
          if (turns == Infinity) return undefined
          if (turns--) return setImmediate(arrive)
          for (const other of all) if (other != target) other[name](...args)
        }
        arrive()
      }
    },
  }))
}

test('localStorage that is slow to spread: with locks, nobody reads what is old', async () => {
  const locks = new FakeLocks()
  const time = clock()
  const tabs = await Promise.all(processes(4, 20).map((localStorage, i) =>
    openStore({ localStorage, locks: locks.forTab({ i }) }, time)))
  const add = box => box.put(draft('counter', { n: (box.get('counter')?.n ?? 0) + 1 }))
  await Promise.all(tabs.flatMap(tab => [1, 2, 3, 4, 5].map(() => tab.update('s', add))))
  assert.equal(await tabs[3].update('s', box => box.get('counter').n), 20)
  for (const tab of tabs) tab.close()
})

test('localStorage that does not spread at all: nothing is changed', async () => {
  const locks = new FakeLocks()
  const [one, two] = await Promise.all(processes(2, Infinity).map(localStorage => openStore({ localStorage, locks: locks.forTab({}) }, clock())))
  await one.update('s', box => box.put(draft('1')))
  await assert.rejects(two.update('s', box => box.all()), /does not keep up/)
})

/** IndexedDB in trouble. */
const broken = { open: () => { throw new DOMException('no', 'UnknownError') } }
const mute = { open: () => ({}) }

test('a browser without IndexedDB uses localStorage, and stays with it', async () => {
  const localStorage = new FakeStorage()
  const store = await openStore({ indexedDB: broken, localStorage }, clock())
  assert.equal(store.name, 'localstorage')
  await store.update('s', box => box.put(draft('1')))
  const later = await openStore({ indexedDB: new IDBFactory(), localStorage }, clock())
  assert.equal(later.name, 'localstorage', 'the drafts are there')
  assert.equal(await later.update('s', box => box.all().length), 1)
})

test('where IndexedDB was used and fails, nothing else is used instead', async () => {
  const localStorage = new FakeStorage()
  await openStore({ indexedDB: new IDBFactory(), localStorage }, clock())
  await assert.rejects(openStore({ indexedDB: broken, localStorage }, clock()), { name: 'UnknownError' })
})

test('an IndexedDB that never answers is not waited for without end', async () => {
  const time = clock()
  const opening = openStore({ indexedDB: mute, localStorage: new FakeStorage() }, time)
  assert.equal((await time.fire('open')).ms, 5000)
  assert.equal((await opening).name, 'localstorage')
})

test('without both: memory, which says that it keeps nothing', async () => {
  const full = new FakeStorage()
  full.full = true
  for (const env of [{}, { localStorage: full }]) {
    const store = await openStore(env, clock())
    assert.equal(store.name, 'memory')
    assert.equal(store.durable, false)
  }
  const store = memoryStore()
  await store.update('s', box => box.put(draft('1')))
  assert.equal(await store.update('s', box => box.all().length), 1)
  await store.update('s', box => box.remove('1'))
  assert.equal(await store.update('s', box => box.all().length), 0)
})

test('a tab that died inside the timed lock does not stop the others', async () => {
  const localStorage = new FakeStorage()
  const time = clock()
  localStorage.setItem('semel lock', `gone ${time.now() - 5000}`)
  const store = await openStore({ localStorage }, time)
  await store.update('s', box => box.put(draft('1')))
  assert.equal(localStorage.getItem('semel lock'), null)
})
