import assert from 'node:assert/strict'
import { test } from 'node:test'
import { canonical } from '../src/drafts.js'
import { newId } from '../src/ids.js'
import { fakeServer } from './support/server.js'
import { MENU, Profile, view } from './support/world.js'

async function setup(t, options, parts) {
  const server = await fakeServer(t)
  const profile = new Profile(t, server, parts)
  const tab = profile.tab(options)
  return { server, profile, tab, semel: tab.semel, clock: profile.clock }
}

async function finish(server, op) {
  await view(op, v => v.recorded == 'yes')
  server.set(op.id, { state: 'succeeded', result: {} })
  return op.settled
}

test('a double click is one intent', async t => {
  const { server, semel } = await setup(t)
  const [a, b] = await Promise.all([semel.submit('menu-export', MENU), semel.submit('menu-export', MENU)])
  assert.equal(a, b)
  await finish(server, a)
  assert.equal(server.created, 1)
})

test('other member order and other white space are the same content', async t => {
  const { semel } = await setup(t)
  const a = await semel.submit('note', { a: 1, b: [{ c: 2, d: 'x' }] })
  const b = await semel.submit('note', { b: [{ d: 'x', c: 2 }], a: 1 })
  assert.equal(a, b)
  assert.equal(canonical({ b: 1, a: [null, true, 'é', { z: 0, y: '' }] }), '{"a":[null,true,"é",{"y":"","z":0}],"b":1}')
})

test('the same content after it is settled is not a new operation, unless asked', async t => {
  const { server, semel } = await setup(t)
  const a = await semel.submit('menu-export', MENU)
  await finish(server, a)
  assert.equal(await semel.submit('menu-export', MENU), a)
  assert.equal(server.created, 1)
  const b = await semel.submit('menu-export', MENU, { again: true })
  assert.notEqual(b, a)
  await finish(server, b)
  assert.equal(server.created, 2)
})

test('"again" pressed twice is one more, not two', async t => {
  const { server, semel } = await setup(t)
  const a = await semel.submit('menu-export', MENU)
  await finish(server, a)
  const [b, c] = await Promise.all([
    semel.submit('menu-export', MENU, { again: a }), semel.submit('menu-export', MENU, { again: a })])
  assert.equal(b, c)
  await finish(server, b)
  assert.equal(await semel.submit('menu-export', MENU, { again: a.id }), b, 'even when it is settled meanwhile')
  const d = await semel.submit('menu-export', MENU, { again: b })
  assert.notEqual(d, b)
  await finish(server, d)
  assert.equal(server.created, 3)
})

test('"again" while it is unsettled: true resumes it, an operation makes one more on purpose', async t => {
  const { semel } = await setup(t)
  const a = await semel.submit('menu-export', MENU)
  assert.equal(await semel.submit('menu-export', MENU, { again: true }), a)
  assert.notEqual(await semel.submit('menu-export', MENU, { again: a }), a)
})

test('an edit is a new intent; going back to an unsettled one resumes it', async t => {
  const { server, semel } = await setup(t)
  const a = await semel.submit('menu-export', MENU)
  const b = await semel.submit('menu-export', { ...MENU, title: '下周菜单' })
  assert.notEqual(a, b)
  assert.equal(await semel.submit('menu-export', MENU), a)
  assert.equal(await semel.current('menu-export'), a)
  await finish(server, a)
  await finish(server, b)
  assert.equal(server.created, 2)
})

test('going back to a settled one that is no longer current is a new intent', async t => {
  const { server, semel } = await setup(t)
  const a = await semel.submit('menu-export', MENU)
  await finish(server, a)
  await finish(server, await semel.submit('menu-export', { title: 'other' }))
  assert.notEqual(await semel.submit('menu-export', MENU), a)
})

test('kinds do not see each other', async t => {
  const { semel } = await setup(t)
  const a = await semel.submit('menu-export', MENU)
  const b = await semel.submit('note', MENU)
  assert.notEqual(a, b)
  assert.equal(await semel.current('menu-export'), a)
  assert.equal(await semel.current('note'), b)
})

for (const parts of [{}, { indexedDB: false }, { indexedDB: false, locks: false }]) {
  test(`after a reload the same task comes back (${JSON.stringify(parts)})`, async t => {
    const { server, profile, tab, semel, clock } = await setup(t, {}, parts)
    for (const label of ['mutex', 'lease']) clock.auto.add(label)
    server.fault('PUT', 'cut')
    server.fault('GET', { status: 500 })
    const before = await semel.submit('menu-export', MENU)
    await view(before, v => v.problem?.status == 500)
    tab.kill()
    clock.time += 60_000
    const { semel: after } = profile.tab()
    const [op] = await after.resume()
    assert.equal(op.id, before.id)
    assert.deepEqual(op.params, MENU)
    assert.equal((await after.submit('menu-export', MENU)).id, before.id)
    await finish(server, op)
    assert.equal(server.created, 1)
    assert.equal(server.count('PUT'), 1)
    assert.equal((await after.current('menu-export')).view.phase, 'done')
    assert.deepEqual(await after.pending(), [])
  })
}

test('a reload in the middle of the first transmission: it may have been recorded', async t => {
  const { server, profile, tab, semel } = await setup(t)
  server.fault('PUT', { hold: new Promise(() => {}) })
  const before = await semel.submit('menu-export', MENU)
  await server.saw('PUT')
  tab.kill()
  server.fault('GET', { status: 503 })
  const { semel: after } = profile.tab()
  const [op] = await after.resume()
  const doubt = await view(op, v => v.attempts == 1 && v.phase != 'sending')
  assert.equal(doubt.phase, 'unconfirmed')
  assert.equal(doubt.recorded, 'unknown')
  await view(op, 'accepted')
  assert.equal(op.id, before.id)
  assert.equal(server.created, 1)
  assert.equal(server.count('PUT'), 1)
})

test('signing in as someone else neither resumes nor shows the other account\'s drafts', async t => {
  const { server, profile, tab, semel } = await setup(t)
  await server.stop()
  await view(await semel.submit('menu-export', MENU), 'unconfirmed')
  tab.kill()
  await server.start()
  const other = profile.tab({ account: 'globex', token: 'token-globex' })
  const heard = []
  other.semel.on(op => heard.push(op.id))
  assert.deepEqual(await other.semel.resume(), [])
  assert.equal(await other.semel.current('menu-export'), undefined)
  const own = await other.semel.submit('menu-export', MENU)
  await finish(server, own)
  assert.ok(heard.every(id => id == own.id))
  assert.equal(server.created, 1)
  assert.equal((await profile.tab().semel.resume()).length, 1, 'the first account\'s is still there')
})

test('another server is another world', async t => {
  const { profile, semel } = await setup(t)
  await semel.submit('menu-export', MENU)
  const elsewhere = profile.tab({ server: 'http://127.0.0.1:9' })
  assert.deepEqual(await elsewhere.semel.pending(), [])
})

test('storage cleared: nothing is created by itself', async t => {
  const { server, profile, tab, semel } = await setup(t)
  const op = await semel.submit('menu-export', MENU)
  await view(op, 'accepted')
  tab.kill()
  profile.indexedDB.deleteDatabase('semel')
  const { semel: after } = profile.tab()
  assert.deepEqual(await after.resume(), [])
  assert.equal(await after.current('menu-export'), undefined)
  assert.equal(server.count('PUT'), 1)
})

test('storage cleared under an open page: the identity is kept', async t => {
  const { server, profile, semel } = await setup(t)
  profile.localStorage.removeItem('x')
  server.fault('PUT', 'refuse')
  server.fault('GET', { status: 500 })
  const op = await semel.submit('menu-export', MENU)
  await view(op, v => v.problem?.status == 500)
  await new Promise((resolve, reject) => {
    const open = profile.indexedDB.open('semel', 1)
    open.onerror = reject
    open.onsuccess = () => {
      const transaction = open.result.transaction('drafts', 'readwrite')
      transaction.objectStore('drafts').clear()
      transaction.oncomplete = resolve
    }
  })
  await view(op, 'accepted')
  assert.equal(server.created, 1)
  assert.equal((await profile.tab().semel.pending())[0].id, op.id)
})

test('only so many settled drafts stay, the unsettled all do, and only the newest keeps its content', async t => {
  const { server, profile, semel } = await setup(t, { keep: 3 })
  const open = []
  for (let i = 0; i < 8; i++) {
    const op = await semel.submit('note', { text: `${i}` })
    if (i % 2) await finish(server, op)
    else {
      await view(op, 'accepted')
      open.push(op.id)
    }
  }
  const later = profile.tab().semel
  assert.deepEqual((await later.pending()).map(op => op.id).sort(), open.sort())
  assert.deepEqual((await later.current('note')).params, { text: '7' })
  await later.forget()
  assert.equal((await later.current('note')).params.text, '6')
})

test('where nothing can be stored, nothing is sent', async t => {
  const { server, profile, semel } = await setup(t, {}, { indexedDB: false })
  await semel.pending()
  profile.localStorage.full = true
  await assert.rejects(semel.submit('menu-export', MENU), { code: 'not-stored' })
  assert.equal(server.requests.length, 0)
})

test('without any storage it still works, and the view says that nothing is kept', async t => {
  const { server, semel } = await setup(t, {}, { indexedDB: false, localStorage: false, locks: false, channel: false })
  const op = await semel.submit('menu-export', MENU)
  assert.equal(op.view.durable, false)
  assert.equal(await semel.storage(), 'memory')
  assert.equal((await finish(server, op)).phase, 'done')
})

test('a closed client does nothing more', async t => {
  const { semel } = await setup(t)
  await semel.close()
  await assert.rejects(semel.submit('menu-export', MENU), { code: 'closed' })
})

test('operation IDs are UUIDv7', () => {
  const ids = Array.from({ length: 1000 }, () => newId())
  for (const id of ids) assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.equal(new Set(ids).size, ids.length)
  const fixed = newId(0x0197_1234_5678, new Uint8Array(10).fill(0xff))
  assert.equal(fixed, '01971234-5678-7fff-bfff-ffffffffffff')
  assert.equal(newId(5, new Uint8Array(10)), '00000000-0005-7000-8000-000000000000')
})
