import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeServer } from './support/server.js'
import { MENU, Profile, view } from './support/world.js'

async function setup(t, options) {
  const server = await fakeServer(t)
  const profile = new Profile(t, server)
  const tab = profile.tab(options)
  return { server, profile, tab, semel: tab.semel, clock: profile.clock }
}

const gets = (server, op) => server.count('GET', new RegExp(`${op.id}$`))
const opened = (server, op) => server.requests.filter(r => r.path.endsWith(`${op.id}/events`))

test('events carry the credential, and reconnect with Last-Event-ID', async t => {
  const { server, semel } = await setup(t)
  const op = await semel.submit('menu-export', MENU)
  await view(op, v => v.connection == 'live')
  server.set(op.id, { state: 'processing' })
  await view(op, 'processing')
  const again = server.saw('GET', 2, /events$/)
  server.cutStreams()
  await again
  server.set(op.id, { state: 'succeeded', result: 1 })
  await op.settled
  const [first, second] = opened(server, op)
  assert.equal(first.headers.authorization, 'Bearer token-acme')
  assert.equal(first.headers['last-event-id'], '1')
  assert.equal(second.headers['last-event-id'], '2')
})

test('a server restart in the middle: followed to the end', async t => {
  const { server, semel } = await setup(t)
  const op = await semel.submit('menu-export', MENU)
  await view(op, v => v.connection == 'live')
  await server.stop()
  await view(op, v => v.problem?.code == 'no-answer')
  assert.equal(op.view.phase, 'accepted', 'what is confirmed stays confirmed')
  assert.equal(op.view.recorded, 'yes')
  server.set(op.id, { state: 'processing' })
  await server.start()
  await view(op, v => v.phase == 'processing' && v.connection == 'live')
  server.set(op.id, { state: 'succeeded', result: 1 })
  await op.settled
  assert.equal(server.count('PUT'), 1)
})

test('no events at all: look-ups, with If-None-Match, until it is done', async t => {
  const { server, semel, clock } = await setup(t)
  server.events = 'off'
  clock.auto.delete('poll')
  const op = await semel.submit('menu-export', MENU)
  const look = async () => {
    await clock.timer('poll')
    const seen = server.saw('GET', gets(server, op) + 1, new RegExp(`${op.id}$`))
    await clock.fire('poll')
    await seen
  }
  await look()
  await look()
  assert.equal(opened(server, op).length, 3, 'given up after three streams that told nothing')
  server.set(op.id, { state: 'processing' })
  await look()
  await view(op, 'processing')
  server.set(op.id, { state: 'succeeded', result: 1 })
  await look()
  await op.settled
  const looks = server.requests.filter(r => r.method == 'GET' && r.path.endsWith(op.id))
  assert.ok(looks.every(r => /^"\d+"$/.test(r.headers['if-none-match'])))
  assert.equal(opened(server, op).length, 3)
})

test('look-ups come no sooner than the server asks, and grow rarer without news', async t => {
  const { server, semel, clock } = await setup(t, { timeouts: { poll: 1000, cap: 4000 } })
  server.events = 'off'
  clock.auto.delete('poll')
  clock.chance = () => 1
  const op = await semel.submit('menu-export', MENU)
  const waits = []
  for (let i = 0; i < 6; i++) waits.push((await clock.fire('poll')).ms)
  assert.ok(waits.every((ms, i) => ms >= 1000 && ms <= 4000 && ms >= (waits[i - 1] ?? 0)), `${waits}`)
  assert.equal(waits.at(-1), 4000)
  op.check()
})

test('a stream that is held back on the way: what is silent is looked past, and looking takes over', async t => {
  const { server, semel, clock } = await setup(t)
  server.events = 'buffered'
  const op = await semel.submit('menu-export', MENU)
  await view(op, v => v.connection == 'live')
  const again = server.saw('GET', 2, /events$/)
  await clock.fire('silence')
  await again
  assert.equal(op.view.phase, 'accepted', 'silent, and nothing new: it is followed again')
  await view(op, v => v.connection == 'live')
  server.set(op.id, { state: 'processing' })
  await clock.fire('silence')
  await view(op, 'processing')
  server.set(op.id, { state: 'succeeded', result: 1 })
  await op.settled
  assert.equal(opened(server, op).length, 2, 'a deaf stream is not opened again')
})

test('a stream of which not a byte comes: given up soon, and looking takes over', async t => {
  const { server, semel, clock } = await setup(t)
  server.events = 'mute'
  const op = await semel.submit('menu-export', MENU)
  for (let i = 1; i <= 3; i++) {
    await server.saw('GET', i, /events$/)
    assert.equal((await clock.fire('first')).ms, 5000)
  }
  await view(op, v => v.nextCheckIn > 2500)
  server.set(op.id, { state: 'succeeded', result: 1 })
  assert.equal((await op.settled).phase, 'done')
  assert.equal(opened(server, op).length, 3)
})

test('a stream that dies in silence: the check finds the server gone, and it starts over', async t => {
  const { server, semel, clock } = await setup(t)
  server.events = 'buffered'
  const op = await semel.submit('menu-export', MENU)
  await view(op, v => v.connection == 'live')
  server.fault('GET', 'refuse', new RegExp(`${op.id}$`))
  server.events = 'on'
  const again = server.saw('GET', 2, /events$/)
  await clock.fire('silence')
  await again
  await view(op, v => v.connection == 'live')
  server.set(op.id, { state: 'succeeded', result: 1 })
  await op.settled
})

test('looked at again after a sleep: the stream is opened anew at once', async t => {
  const { server, semel, tab } = await setup(t)
  const op = await semel.submit('menu-export', MENU)
  await view(op, v => v.connection == 'live')
  server.events = 'buffered'
  server.set(op.id, { state: 'processing' })
  server.events = 'on'
  tab.event('visibilitychange')
  await view(op, 'processing')
  assert.ok(opened(server, op).length + gets(server, op) >= 2)
})

test('hidden is no reason to ask', async t => {
  const { server, semel, tab } = await setup(t)
  const op = await semel.submit('menu-export', MENU)
  await view(op, v => v.connection == 'live')
  const before = server.requests.length
  tab.hidden = true
  tab.event('visibilitychange')
  await semel.pending()
  assert.equal(server.requests.length, before)
})

test('an older answer never undoes a newer one', async t => {
  const { server, semel, clock } = await setup(t)
  const op = await semel.submit('menu-export', MENU)
  await view(op, v => v.connection == 'live')
  const old = { ...server.find(op.id) }
  server.set(op.id, { state: 'processing' })
  await view(op, 'processing')
  server.fault('GET', { status: 200, body: old }, new RegExp(`${op.id}$`))
  const looked = server.saw('GET', gets(server, op) + 1, new RegExp(`${op.id}$`))
  await clock.fire('silence')
  await looked
  await clock.timer('silence')
  assert.equal(op.view.phase, 'processing')
})

test('what the server once confirmed is never sent again, even if it is not found later', async t => {
  const { server, semel } = await setup(t)
  const op = await semel.submit('menu-export', MENU)
  await view(op, v => v.connection == 'live')
  server.operations.clear()
  server.cutStreams()
  const gone = await view(op, v => v.problem?.code == 'operation-not-found')
  assert.equal(gone.phase, 'accepted')
  assert.equal(gone.recorded, 'yes')
  await server.saw('GET', gets(server, op) + 3, new RegExp(`${op.id}$`))
  assert.equal(server.count('PUT'), 1)
})

test('expired while it was followed: nobody can say any more', async t => {
  const { server, semel } = await setup(t)
  const op = await semel.submit('menu-export', MENU)
  await view(op, v => v.connection == 'live')
  Object.defineProperty(server.find(op.id), 'expired', { value: true })
  server.cutStreams()
  const last = await op.settled
  assert.equal(last.phase, 'expired')
  assert.equal(last.problem.retention_seconds, 30 * 86400)
})

test('signed out while following: it asks to sign in, keeps what it knows, and goes on', async t => {
  const { server, semel } = await setup(t)
  const op = await semel.submit('menu-export', MENU)
  await view(op, v => v.connection == 'live')
  server.tokens.delete('token-acme')
  server.cutStreams()
  const out = await view(op, v => v.needs == 'sign-in')
  assert.equal(out.phase, 'accepted')
  server.tokens.set('fresh', 'acme')
  server.set(op.id, { state: 'succeeded', result: 1 })
  await semel.setToken('fresh')
  assert.equal((await op.settled).phase, 'done')
})

test('no more event streams than allowed; the others are looked up', async t => {
  const { server, semel } = await setup(t, { streams: 2 })
  const ops = []
  for (const text of ['a', 'b', 'c', 'd']) ops.push(await semel.submit('note', { text }))
  await Promise.all(ops.map(op => view(op, v => v.phase == 'accepted' && v.connection != 'asking')))
  assert.ok(server.streams <= 2)
  for (const op of ops) server.set(op.id, { state: 'succeeded', result: 1 })
  for (const op of ops) assert.equal((await op.settled).phase, 'done')
})

test('into the back/forward cache and out again: let go, then carried on', async t => {
  const { server, semel, tab } = await setup(t)
  const op = await semel.submit('menu-export', MENU)
  await view(op, v => v.connection == 'live')
  tab.event('pagehide')
  while (server.streams) await new Promise(resolve => setImmediate(resolve))
  server.set(op.id, { state: 'succeeded', result: 1 })
  assert.equal(op.view.phase, 'accepted')
  tab.event('pageshow')
  assert.equal((await op.settled).phase, 'done')
  assert.equal(server.count('PUT'), 1)
})
