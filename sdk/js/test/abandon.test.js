import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describe } from '../src/messages.js'
import { fakeServer } from './support/server.js'
import { gate, MENU, Profile, view } from './support/world.js'

async function setup(t, options) {
  const server = await fakeServer(t)
  const profile = new Profile(t, server)
  const tab = profile.tab(options)
  return { server, profile, tab, semel: tab.semel, clock: profile.clock }
}

test('accepted and abandoned: it never happens', async t => {
  const { server, semel } = await setup(t)
  const op = await semel.submit('menu-export', MENU)
  await view(op, v => v.connection == 'live')
  const last = await op.abandon()
  assert.equal(last.phase, 'abandoned')
  assert.equal(last.settled, true)
  assert.equal(server.find(op.id).state, 'abandoned')
})

test('while the first answer is out: the request is dropped, and a late one finds the tombstone', async t => {
  const { server, semel } = await setup(t)
  const slow = gate()
  server.fault('PUT', { wait: slow.promise })
  const op = await semel.submit('menu-export', MENU)
  await server.saw('PUT')
  assert.equal((await op.abandon()).phase, 'abandoned')
  slow.open()
  await semel.pending()
  assert.equal(server.find(op.id).state, 'abandoned')
  assert.equal(server.created, 0)
})

test('never sent: no server is needed', async t => {
  const { server, semel, tab } = await setup(t)
  tab.offline = true
  const op = await semel.submit('menu-export', MENU)
  const last = await op.abandon()
  assert.equal(last.phase, 'abandoned')
  assert.equal(last.recorded, 'no')
  assert.equal(server.requests.length, 0)
})

test('too late: it shows the operation, says so, and goes on following it', async t => {
  const { server, semel } = await setup(t)
  const op = await semel.submit('menu-export', MENU)
  await view(op, v => v.connection == 'live')
  server.set(op.id, { state: 'processing' })
  const now = await op.abandon()
  assert.equal(now.phase, 'processing')
  assert.equal(now.problem.code, 'already-started')
  assert.equal(now.abandoning, false)
  await view(op, v => v.connection == 'live')
  assert.equal(op.view.problem?.code, 'already-started', 'still said')
  server.set(op.id, { state: 'succeeded', result: 1 })
  assert.equal((await op.settled).phase, 'done')
})

test('the answer to it is lost: asked again until it is known', async t => {
  const { server, semel } = await setup(t)
  const op = await semel.submit('menu-export', MENU)
  await view(op, v => v.connection == 'live')
  server.fault('DELETE', 'cut')
  server.fault('DELETE', { status: 503 })
  const last = await op.abandon()
  assert.equal(last.phase, 'abandoned')
  assert.equal(server.count('DELETE'), 3)
})

/** What may come back instead of an answer to "make sure that it never happens". */
const NO_ANSWERS = {
  'the store is away': [server => server.problem('store-unavailable'), 'store-unavailable'],
  'a proxy says 503': [() => ({ status: 503, type: 'text/html', body: '<h1>Sorry</h1>', headers: { 'retry-after': '7' } }), 'unclear-answer'],
  'too many requests': [server => server.problem('too-many-requests'), 'too-many-requests', 7000],
  'nothing at all': [() => ({ wait: new Promise(() => {}) }), 'no-answer'],
  'nothing, before it was done': [() => 'refuse', 'no-answer'],
  'nothing, after it was done': [() => 'cut', 'no-answer'],
  'half an answer': [() => 'half', 'no-answer'],
  'a proxy says 503, after it was done': [() => ({ after: { status: 503 } }), 'unclear-answer'],
}

for (const [name, [answer, code, atLeast = 0]] of Object.entries(NO_ANSWERS)) {
  test(`unconfirmed and given up, and to that: ${name}. It stays unconfirmed, and is asked again`, async t => {
    const { server, semel, clock } = await setup(t)
    clock.auto.delete('retry')
    server.fault('PUT', 'refuse')
    const op = await semel.submit('menu-export', MENU)
    await view(op, v => v.phase == 'unconfirmed' && v.connection == 'waiting')
    for (let i = 0; i < 3; i++) server.fault('DELETE', answer(server))
    const seen = new Set()
    op.on(v => seen.add(v))
    const last = op.abandon()
    for (let i = 1; i <= 3; i++) {
      await server.saw('DELETE', i)
      if (name == 'nothing at all') await clock.fire('answer')
      await view(op, v => v.problem?.code == code && v.connection == 'waiting')
      assert.ok((await clock.fire('retry')).ms >= atLeast)
    }
    assert.equal((await last).phase, 'abandoned')
    const before = [...seen].filter(v => v.abandoning)
    assert.ok(before.length >= 4)
    for (const v of before) {
      assert.deepEqual([v.phase, v.settled, v.recorded, v.error], ['unconfirmed', false, 'unknown', undefined])
      const { title, tone, actions } = describe(v)
      assert.deepEqual([title, tone], ['Stopping.', 'doubt'])
      assert.ok(!actions.includes('again'), 'it may still happen: no new one is offered')
    }
    const asked = server.requests.filter(r => r.method == 'DELETE').map(r => r.path)
    assert.deepEqual(asked, Array(4).fill(`/v1/operations/menu-export/${op.id}`))
    assert.equal(server.count('PUT'), 1)
    assert.equal(server.created, 0)
  })
}

test('the wish survives a reload, and nothing is sent instead', async t => {
  const { server, semel, tab, profile, clock } = await setup(t)
  clock.auto.delete('retry')
  server.fault('PUT', 'refuse')
  const op = await semel.submit('menu-export', MENU)
  await view(op, v => v.phase == 'unconfirmed' && v.connection == 'waiting')
  server.fault('DELETE', { status: 503 })
  op.abandon()
  await view(op, v => v.abandoning && v.problem?.status == 503)
  tab.kill()
  const [back] = await profile.tab().semel.resume()
  assert.equal((await back.settled).phase, 'abandoned')
  assert.equal(server.count('PUT'), 1)
  assert.equal(server.created, 0)
})

test('asked for in one tab, done by the tab that works on it', async t => {
  const { server, semel, profile } = await setup(t)
  const op = await semel.submit('menu-export', MENU)
  await view(op, v => v.connection == 'live')
  const [twin] = await profile.tab().semel.resume()
  assert.equal((await twin.abandon()).phase, 'abandoned')
  assert.equal((await op.settled).phase, 'abandoned')
  assert.equal(server.count('DELETE'), 1)
})

test('abandoned elsewhere, and then sent: it is abandoned', async t => {
  const { server, semel } = await setup(t)
  server.fault('PUT', server.problem('operation-abandoned'))
  const op = await semel.submit('menu-export', MENU)
  assert.equal((await op.settled).phase, 'abandoned')
})

test('settled: abandoning changes nothing', async t => {
  const { server, semel } = await setup(t)
  const op = await semel.submit('menu-export', MENU)
  await view(op, v => v.connection == 'live')
  server.set(op.id, { state: 'succeeded', result: 1 })
  await op.settled
  assert.equal((await op.abandon()).phase, 'done')
  assert.equal(server.count('DELETE'), 0)
})
