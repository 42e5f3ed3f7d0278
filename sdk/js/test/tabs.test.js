import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeClock, gate, MENU, Profile, view } from './support/world.js'
import { fakeServer } from './support/server.js'

const WORLDS = {
  'locks and channel': {},
  'locks, no channel': { channel: false },
  'no locks, channel': { locks: false },
  'neither': { locks: false, channel: false },
  'localStorage with locks': { indexedDB: false },
  'localStorage alone': { indexedDB: false, locks: false, channel: false },
}

async function setup(t, parts) {
  const server = await fakeServer(t)
  const profile = new Profile(t, server, parts)
  for (const label of ['mutex', 'sync', 'lease']) profile.clock.auto.add(label)
  return { server, profile, clock: profile.clock }
}

for (const [name, parts] of Object.entries(WORLDS)) {
  test(`five tabs press at once: one draft, one transmission at a time, one operation (${name})`, async t => {
    const { server, profile } = await setup(t, parts)
    server.fault('PUT', 'refuse')
    const tabs = [1, 2, 3, 4, 5].map(() => profile.tab())
    const ops = await Promise.all(tabs.map(tab => tab.semel.submit('menu-export', MENU)))
    assert.equal(new Set(ops.map(op => op.id)).size, 1)
    await Promise.all(ops.map(op => view(op, 'accepted')))
    server.set(ops[0].id, { state: 'succeeded', result: { n: 1 } })
    const views = await Promise.all(ops.map(op => op.settled))
    assert.ok(views.every(v => v.phase == 'done' && v.result.n == 1))
    assert.equal(server.created, 1)
    assert.equal(server.count('PUT'), 2)
    assert.equal(server.overlap, 1)
  })

  test(`the sending tab dies: another goes on with the same identity (${name})`, async t => {
    const { server, profile, clock } = await setup(t, parts)
    const slow = gate()
    t.after(slow.open)
    server.fault('PUT', { hold: slow.promise })
    const first = profile.tab()
    const op = await first.semel.submit('menu-export', MENU)
    await server.saw('PUT')
    const second = profile.tab()
    const [twin] = await second.semel.resume()
    assert.equal(twin.id, op.id)
    first.kill()
    clock.time += 60_000
    await view(twin, 'accepted')
    assert.equal(server.created, 1)
    assert.equal(server.count('PUT'), 1, 'looked up first')
  })
}

test('the other tabs see phases and progress as they come', async t => {
  const { server, profile } = await setup(t)
  const a = await profile.tab().semel.submit('menu-export', MENU)
  const watcher = profile.tab().semel
  const seen = []
  watcher.on(op => seen.push(op.view.phase))
  const [b] = await watcher.resume()
  await view(a, v => v.connection == 'live')
  server.set(a.id, { state: 'processing' })
  server.set(a.id, { progress: { fraction: 0.5 } }, false)
  assert.equal((await view(b, v => v.progress)).progress.fraction, 0.5)
  server.set(a.id, { state: 'succeeded', result: 1 })
  await b.settled
  assert.ok(seen.includes('processing') && seen.includes('done'))
  assert.deepEqual(b.params, MENU)
  assert.equal(server.count('GET', /events$/), 1, 'one stream for both')
})

test('a tab that was there before hears of a new draft', async t => {
  const { server, profile } = await setup(t)
  const watcher = profile.tab().semel
  await watcher.resume()
  const heard = new Promise(resolve => watcher.on(resolve))
  const op = await profile.tab().semel.submit('menu-export', MENU)
  assert.equal((await heard).id, op.id)
  assert.deepEqual((await heard).params, MENU)
  await view(op, v => v.connection == 'live')
  server.set(op.id, { state: 'succeeded', result: 1 })
  assert.equal((await (await heard).settled).phase, 'done')
})

/** A tab whose process can be frozen: then it has no timer, no answer and no word. */
function sleeper(profile) {
  const awake = gate()
  const clock = new FakeClock()
  clock.auto.clear()
  clock.time = profile.clock.time
  const tab = profile.tab({
    clock,
    fetch: (url, init) => fetch(url, { ...init, signal: undefined }).then(async r => {
      if (tab.frozen) await awake.promise
      return r
    }),
  })
  return {
    tab, clock,
    wake() {
      tab.frozen = false
      awake.open()
    },
  }
}

for (const locks of [true, false]) {
  const world = locks ? 'with locks' : 'without locks'

  test(`a tab falls asleep while its request is out: nobody sends before that has surely ended (${world})`, async t => {
    const { server, profile, clock } = await setup(t, { locks })
    for (const label of ['sync', 'lease']) clock.auto.delete(label)
    const slow = gate()
    const first = sleeper(profile)
    t.after(() => (slow.open(), first.wake()))
    server.fault('PUT', { wait: slow.promise })
    const op = await first.tab.semel.submit('menu-export', MENU)
    await server.saw('PUT')
    first.tab.frozen = true
    const [twin] = await profile.tab().semel.resume()
    clock.time += 20_000
    const look = async () => {
      const { time } = clock
      for (const label of locks ? ['sync'] : ['sync', 'lease']) await clock.fire(label)
      clock.time = time
    }
    for (let i = 0; i < 4; i++) await look()
    assert.equal(server.requests.length, 1, 'the first may still be sending')
    slow.open()
    clock.time += 60_000
    await clock.fire('sync')
    await view(twin, 'accepted')
    assert.equal(server.created, 1)
    assert.equal(server.overlap, 1)
    // It wakes up and finds itself replaced.
    server.set(op.id, { state: 'succeeded', result: 1 })
    await twin.settled
    first.wake()
    first.tab.event('visibilitychange')
    assert.equal((await op.settled).phase, 'done')
    assert.equal(server.count('PUT'), 1)
  })
}

test('a tab that was replaced while it slept cannot send', async t => {
  const { server, profile, clock } = await setup(t, { locks: false })
  server.fault('PUT', 'refuse')
  const first = sleeper(profile)
  const op = await first.tab.semel.submit('menu-export', MENU)
  await view(op, v => v.phase == 'unconfirmed' && v.connection == 'waiting')
  first.tab.frozen = true
  clock.time += 60_000
  // The second takes over; its request is out when the first wakes up and goes on.
  const slow = gate()
  t.after(slow.open)
  server.fault('PUT', { wait: slow.promise })
  const [twin] = await profile.tab().semel.resume()
  await server.saw('PUT', 2)
  first.clock.time = clock.time
  await first.clock.fire('retry')
  first.wake()
  await Promise.race([first.clock.timer('lease'), server.saw('PUT', 3)])
  assert.equal(server.count('PUT'), 2, 'it waits for the lease instead')
  slow.open()
  await view(twin, 'accepted')
  await view(op, 'accepted')
  assert.equal(server.overlap, 1)
  assert.equal(server.count('PUT'), 2)
  assert.equal(server.created, 1)
})

test('a visible tab takes work from a dead one; a hidden tab does not', async t => {
  const { profile, clock, server } = await setup(t)
  clock.auto.delete('sync')
  const op = await profile.tab().semel.submit('menu-export', MENU)
  await view(op, v => v.connection == 'live')
  const other = profile.tab()
  other.hidden = true
  const asked = server.saw('GET', 2, /events$/)
  await other.semel.resume()
  await asked
  clock.time += 60_000
  for (let i = 0; i < 3; i++) await clock.fire('sync')
  await clock.timer('sync')
  assert.equal(server.count('GET', /events$/), 2)
  other.hidden = false
  await clock.fire('sync')
  await server.saw('GET', 3, /events$/)
})

test('a working tab gives signs of life, and keeps the work', async t => {
  const { profile, clock, server } = await setup(t)
  const op = await profile.tab().semel.submit('menu-export', MENU)
  await view(op, v => v.connection == 'live')
  const other = profile.tab()
  // Being looked at makes the working tab ask once.
  const asked = server.saw('GET', 2, /events$/)
  await other.semel.resume()
  await asked
  for (let i = 0; i < 10; i++) {
    await clock.fire('beat')
    await other.semel.pending()
  }
  assert.equal(server.count('GET', /events$/), 2)
  server.set(op.id, { state: 'succeeded', result: 1 })
  await op.settled
})

test('signed out in the working tab, signed in in the other: the other goes on', async t => {
  const { profile, server } = await setup(t)
  const first = profile.tab({ token: 'old' })
  const op = await first.semel.submit('menu-export', MENU)
  await view(op, v => v.needs == 'sign-in')
  const second = profile.tab({ token: 'old' })
  const [twin] = await second.semel.resume()
  await second.semel.setToken('token-acme')
  await view(twin, 'accepted')
  await view(op, 'accepted')
  assert.equal(server.created, 1)
})

test('closing a tab hands the work on at once', async t => {
  const { profile, server } = await setup(t)
  const first = profile.tab()
  const op = await first.semel.submit('menu-export', MENU)
  await view(op, v => v.connection == 'live')
  const [twin] = await profile.tab().semel.resume()
  await first.semel.close()
  await server.saw('GET', 2, /events$/)
  server.set(op.id, { state: 'succeeded', result: 1 })
  assert.equal((await twin.settled).phase, 'done')
})
