import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeServer } from './support/server.js'
import { gate, MENU, Profile, view } from './support/world.js'

/** A server, one browser, one tab. */
async function setup(t, options) {
  const server = await fakeServer(t)
  const profile = new Profile(t, server)
  const tab = profile.tab(options)
  return { server, profile, tab, semel: tab.semel, clock: profile.clock }
}

const finish = (server, op, result = { image_url: '/x.png' }) => {
  server.set(op.id, { state: 'processing', executions: 1 })
  server.set(op.id, { state: 'succeeded', result })
}

test('from press to done', async t => {
  const { server, semel } = await setup(t)
  const op = await semel.submit('menu-export', MENU)
  const phases = []
  op.on(v => phases.at(-1) == v.phase || phases.push(v.phase))
  await view(op, v => v.connection == 'live')
  server.set(op.id, { state: 'processing', executions: 1 })
  await view(op, 'processing')
  server.set(op.id, { progress: { fraction: 0.4, note: 'drawing' } }, false)
  const half = await view(op, v => v.progress)
  assert.deepEqual(half.progress, { fraction: 0.4, note: 'drawing' })
  server.set(op.id, { state: 'succeeded', result: { image_url: '/x.png' } })
  const last = await op.settled
  assert.deepEqual(phases, ['sending', 'accepted', 'processing', 'done'])
  assert.deepEqual(last.result, { image_url: '/x.png' })
  assert.equal(last.recorded, 'yes')
  assert.equal(last.attempts, 1)
  assert.deepEqual(op.params, MENU)
  assert.equal(server.created, 1)
  assert.equal(server.count('PUT'), 1)
})

test('the intent is in the store before the first byte goes out', async t => {
  const server = await fakeServer(t)
  const profile = new Profile(t, server)
  let stored
  const tab = profile.tab({
    fetch: async (url, init) => {
      if (init.method == 'PUT') stored = await drafts(profile)
      return fetch(url, init)
    },
  })
  const op = await tab.semel.submit('menu-export', MENU)
  await view(op, 'accepted')
  assert.equal(stored.length, 1)
  assert.equal(stored[0].id, op.id)
  assert.equal(stored[0].params, JSON.stringify(MENU))
  assert.equal(stored[0].attempts, 1)
  assert.equal(stored[0].open, true)
})

/** What lies in the profile's database. */
function drafts(profile) {
  return new Promise((resolve, reject) => {
    const open = profile.indexedDB.open('semel', 1)
    open.onerror = () => reject(open.error)
    open.onsuccess = () => {
      const all = open.result.transaction('drafts').objectStore('drafts').getAll()
      all.onsuccess = () => {
        open.result.close()
        resolve(all.result)
      }
    }
  })
}

test('an answer lost after the commit: unconfirmed, looked up, one operation', async t => {
  const { server, semel } = await setup(t)
  server.fault('PUT', 'cut')
  const op = await semel.submit('menu-export', MENU)
  const lost = await view(op, 'unconfirmed')
  assert.equal(lost.problem.code, 'no-answer')
  assert.equal(lost.recorded, 'unknown')
  await view(op, 'accepted')
  finish(server, op)
  const last = await op.settled
  assert.equal(last.phase, 'done')
  assert.equal(last.problem, undefined)
  assert.equal(server.created, 1)
  assert.equal(server.count('PUT'), 1, 'looked up, not sent again')
})

test('a request lost before it arrived: looked up first, then the same bytes under the same ID', async t => {
  const { server, semel } = await setup(t)
  server.fault('PUT', 'refuse')
  const op = await semel.submit('menu-export', MENU)
  await view(op, 'accepted')
  const seen = server.requests.filter(r => r.path.endsWith(op.id)).map(r => r.method)
  assert.deepEqual(seen, ['PUT', 'GET', 'PUT'])
  const [first, second] = server.requests.filter(r => r.method == 'PUT')
  assert.equal(first.path, second.path)
  assert.equal(first.body, second.body)
  assert.notEqual(first.headers['attempt-id'], second.headers['attempt-id'])
  assert.equal(server.created, 1)
  assert.equal(op.view.attempts, 2)
})

for (const status of [500, 502, 503, 504]) {
  test(`a bare ${status} is unconfirmed, never failed`, async t => {
    const { server, semel } = await setup(t)
    server.fault('PUT', { after: { status, body: '<h1>oops</h1>', type: 'text/html' } })
    const op = await semel.submit('menu-export', MENU)
    const lost = await view(op, 'unconfirmed')
    assert.equal(lost.problem.code, 'unclear-answer')
    assert.equal(lost.problem.status, status)
    await view(op, 'accepted')
    assert.equal(server.created, 1)
    assert.equal(server.count('PUT'), 1)
  })
}

test('a timeout is unconfirmed; the late answer is not waited for', async t => {
  const { server, semel, clock } = await setup(t)
  const late = gate()
  t.after(late.open)
  server.fault('PUT', { hold: late.promise })
  const op = await semel.submit('menu-export', MENU)
  await server.saw('PUT')
  await clock.fire('answer')
  await view(op, 'unconfirmed')
  await view(op, 'accepted')
  assert.equal(server.created, 1)
})

test('an answer of which half is missing is no answer', async t => {
  const { server, semel } = await setup(t)
  server.fault('PUT', 'half')
  const op = await semel.submit('menu-export', MENU)
  await view(op, 'unconfirmed')
  await view(op, 'accepted')
  assert.equal(server.created, 1)
  assert.equal(server.count('PUT'), 1)
})

test('what a login page or a proxy says with 200 is no answer', async t => {
  const { server, semel } = await setup(t)
  server.fault('PUT', { status: 200, body: '<html>please sign in</html>', type: 'text/html' })
  const op = await semel.submit('menu-export', MENU)
  await view(op, 'unconfirmed')
  await view(op, 'accepted')
  assert.equal(server.created, 1)
})

test('a refusal in a proxy\'s words proves nothing', async t => {
  const { server, semel } = await setup(t)
  server.fault('PUT', { status: 413, body: { code: 'too-large', recorded: 'no', retryable: false } })
  const op = await semel.submit('menu-export', MENU)
  const lost = await view(op, v => v.problem)
  assert.equal(lost.phase, 'unconfirmed')
  assert.equal(lost.problem.code, 'unclear-answer')
  await view(op, 'accepted')
  assert.equal(server.created, 1)
})

test('Retry-After may be a date, which is read against the server\'s clock', async t => {
  const { server, semel, clock } = await setup(t)
  clock.auto.delete('retry')
  server.now = () => Date.UTC(2030, 0, 1)
  const busy = server.problem('too-many-requests')
  server.fault('PUT', { ...busy, headers: { 'retry-after': new Date(Date.UTC(2030, 0, 1, 0, 0, 9)).toUTCString() } })
  const op = await semel.submit('menu-export', MENU)
  assert.equal((await view(op, v => v.nextCheckIn)).nextCheckIn, 9000)
})

test('an operation with another identity is no answer', async t => {
  const { server, semel } = await setup(t)
  const body = { key: { account: 'acme', kind: 'menu-export', id: 'other' }, state: 'succeeded', revision: 9 }
  server.fault('PUT', { status: 200, body })
  const op = await semel.submit('menu-export', MENU)
  await view(op, 'unconfirmed')
  const back = await view(op, v => v.recorded == 'yes')
  assert.equal(back.operation.key.id, op.id)
})

test('a redirect is not followed', async t => {
  const { server, semel } = await setup(t)
  server.fault('PUT', { status: 307, headers: { location: '/v1/operations/menu-export/elsewhere' } })
  const op = await semel.submit('menu-export', MENU)
  await view(op, 'unconfirmed')
  await view(op, 'accepted')
  assert.equal(server.count('PUT', /elsewhere/), 0)
})

test('a definite refusal of the first and only transmission: rejected, nothing is recorded', async t => {
  const { server, semel } = await setup(t)
  const op = await semel.submit('menu-export', { title: '' })
  const last = await op.settled
  assert.equal(last.phase, 'rejected')
  assert.equal(last.recorded, 'no')
  assert.equal(last.problem.code, 'invalid-operation')
  assert.equal(last.problem.detail, 'title is empty')
  assert.equal(server.created, 0)
})

test('rejected and pressed again: the same identity goes out once more', async t => {
  const { server, semel } = await setup(t)
  server.kinds.delete('note')
  const first = await semel.submit('note', { text: 'a' })
  assert.equal((await first.settled).problem.code, 'unknown-kind')
  server.kinds.add('note')
  const second = await semel.submit('note', { text: 'a' })
  assert.equal(second, first)
  await view(second, 'accepted')
  assert.equal(server.created, 1)
})

test('after an unknown transmission a 400 proves nothing: still unconfirmed', async t => {
  const { server, semel } = await setup(t)
  server.fault('PUT', 'refuse')
  const refusal = server.problem('invalid-operation')
  server.fault('PUT', refusal)
  server.fault('PUT', refusal)
  const op = await semel.submit('menu-export', MENU)
  const phases = []
  op.on(v => phases.push(v.phase))
  const doubt = await view(op, v => v.problem?.code == 'invalid-operation')
  assert.equal(doubt.phase, 'unconfirmed')
  assert.equal(doubt.recorded, 'unknown')
  assert.equal(doubt.settled, false)
  await view(op, 'accepted')
  assert.ok(!phases.includes('rejected'))
  assert.equal(server.created, 1)
})

test('signed out on the first transmission: it waits, and goes on after setToken', async t => {
  const { server, semel } = await setup(t, { token: 'old' })
  const op = await semel.submit('menu-export', MENU)
  const out = await view(op, v => v.needs == 'sign-in')
  assert.equal(out.phase, 'sending')
  assert.equal(out.recorded, 'no')
  assert.equal(out.settled, false)
  await semel.setToken('token-acme')
  await view(op, 'accepted')
  assert.equal(server.created, 1)
})

test('signed out: the wait is one that every clock can wait', async t => {
  const { semel, clock } = await setup(t, { token: 'old' })
  await semel.submit('menu-export', MENU)
  const { ms } = await clock.timer('sign-in')
  assert.ok(ms > 1e9 && ms < 2 ** 31, `a plain setTimeout fires at once after ${ms} ms`)
})

test('signed out after an unknown transmission: unconfirmed, and goes on after setToken', async t => {
  const { server, semel } = await setup(t)
  server.fault('PUT', 'cut')
  server.fault('GET', server.problem('unauthenticated'))
  const op = await semel.submit('menu-export', MENU)
  const out = await view(op, v => v.needs == 'sign-in')
  assert.equal(out.phase, 'unconfirmed')
  assert.equal(out.recorded, 'unknown')
  await semel.setToken('token-acme')
  await view(op, 'accepted')
  assert.equal(server.created, 1)
})

test('a token from a function is asked for with every request', async t => {
  let n = 0
  const { server, semel } = await setup(t, { token: async () => (n++, 'token-acme') })
  server.fault('PUT', 'cut')
  const op = await semel.submit('menu-export', MENU)
  await view(op, v => v.connection == 'live')
  assert.ok(n >= 3)
})

test('429 with Retry-After: waits that long, then the same identity; a press does not shorten it', async t => {
  const { server, semel, clock } = await setup(t)
  clock.auto.delete('retry')
  server.fault('PUT', server.problem('too-many-requests'))
  const op = await semel.submit('menu-export', MENU)
  const wait = await view(op, v => v.problem?.code == 'too-many-requests' && v.nextCheckIn)
  assert.equal(wait.phase, 'sending')
  assert.equal(wait.recorded, 'no')
  assert.equal(wait.nextCheckIn, 7000)
  op.check()
  await semel.submit('menu-export', MENU)
  assert.equal((await clock.timer('retry')).ms, 7000)
  assert.equal(server.count('PUT'), 1)
  await clock.fire('retry')
  await view(op, 'accepted')
  assert.equal(server.created, 1)
})

test('the wait after failures is random, grows, and is capped', async t => {
  const { server, semel, clock } = await setup(t, { timeouts: { backoff: 1000, cap: 8000 } })
  clock.auto.delete('retry')
  clock.chance = () => 1
  await server.stop()
  await semel.submit('menu-export', MENU)
  const waits = []
  for (let i = 0; i < 6; i++) waits.push((await clock.fire('retry')).ms)
  assert.deepEqual(waits, [1000, 2000, 4000, 8000, 8000, 8000])
  clock.chance = () => 0
  await clock.fire('retry')
  assert.equal((await clock.fire('retry')).ms, 0)
  await server.start()
})

test('a server that is away for a while: found again, one operation', async t => {
  const { server, semel } = await setup(t)
  await server.stop()
  const op = await semel.submit('menu-export', MENU)
  await view(op, 'unconfirmed')
  await server.start()
  await view(op, 'accepted')
  assert.equal(server.created, 1)
})

test('offline: nothing is sent; online: it goes on by itself', async t => {
  const { server, semel, tab } = await setup(t)
  tab.offline = true
  const op = await semel.submit('menu-export', MENU)
  const off = await view(op, v => v.connection == 'offline')
  assert.equal(off.phase, 'sending')
  assert.equal(off.attempts, 0)
  tab.offline = false
  tab.event('online')
  await view(op, 'accepted')
  assert.equal(server.count('PUT'), 1)
})

test('an identity older than what is remembered: expired, explained, not made anew', async t => {
  const { server, semel } = await setup(t)
  server.fault('PUT', 'cut')
  server.fault('GET', server.problem('operation-expired', { retention_seconds: 30 * 86400 }))
  const op = await semel.submit('menu-export', MENU)
  const last = await op.settled
  assert.equal(last.phase, 'expired')
  assert.equal(last.problem.retention_seconds, 30 * 86400)
  assert.equal(server.count('PUT'), 1)
})

test('a device clock that is far behind: refused once, right the next time', async t => {
  const { server, semel, clock } = await setup(t)
  clock.time -= 365 * 86400e3
  const op = await semel.submit('menu-export', MENU)
  assert.equal((await op.settled).phase, 'expired')
  const again = await semel.submit('menu-export', MENU, { again: op })
  await view(again, 'accepted')
  assert.equal(server.created, 1)
})

test('a device clock that is a day ahead changes nothing', async t => {
  const { server, semel, clock } = await setup(t)
  clock.time += 86400e3
  const op = await semel.submit('menu-export', MENU)
  await view(op, v => v.connection == 'live')
  finish(server, op)
  assert.equal((await op.settled).phase, 'done')
  assert.equal(server.created, 1)
})

test('the same identity with another request: conflict', async t => {
  const { server, semel } = await setup(t)
  server.fault('PUT', server.problem('fingerprint-mismatch', { differing_fields: ['/title'] }))
  const op = await semel.submit('menu-export', MENU)
  const last = await op.settled
  assert.equal(last.phase, 'conflict')
  assert.deepEqual(last.problem.differing_fields, ['/title'])
})

test('an accept deadline goes along, unchanged; too late is rejected', async t => {
  const { server, semel } = await setup(t)
  const ok = await semel.submit('menu-export', MENU, { acceptWithin: 60_000 })
  await view(ok, 'accepted')
  assert.match(server.requests[0].headers['accept-until'], /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
  const late = await semel.submit('note', { text: 'late' }, { acceptUntil: new Date(0) })
  const last = await late.settled
  assert.equal(last.phase, 'rejected')
  assert.equal(last.problem.code, 'accept-deadline-passed')
})

test('too late after an unknown transmission is not rejected', async t => {
  const { server, semel, clock } = await setup(t)
  clock.auto.delete('retry')
  server.fault('PUT', 'refuse')
  const op = await semel.submit('menu-export', MENU, { acceptUntil: new Date(server.now() + 60_000) })
  await view(op, 'unconfirmed')
  server.now = () => Date.now() + 120_000
  await clock.fire('retry')
  const doubt = await view(op, v => v.problem?.code == 'accept-deadline-passed')
  assert.equal(doubt.phase, 'unconfirmed')
  assert.equal((await op.abandon()).phase, 'abandoned')
})

test('the credential of another account: nothing of it is shown, and it asks to sign in', async t => {
  const { server, semel } = await setup(t, { token: 'token-globex' })
  const op = await semel.submit('menu-export', MENU)
  const wrong = await view(op, v => v.needs == 'sign-in')
  assert.equal(wrong.problem.code, 'other-account')
  assert.equal(wrong.phase, 'unconfirmed')
  assert.equal(wrong.operation, undefined)
})

test('a failure of the operation is its result, with its reason', async t => {
  const { server, semel } = await setup(t)
  const op = await semel.submit('menu-export', MENU)
  await view(op, v => v.connection == 'live')
  server.set(op.id, { state: 'failed', error: { code: 'no-paper', message: 'out of paper' } })
  const last = await op.settled
  assert.equal(last.phase, 'failed')
  assert.deepEqual(last.error, { code: 'no-paper', message: 'out of paper' })
})

test('needs reconciliation is not the end: a verdict turns it to done by itself', async t => {
  const { server, semel } = await setup(t)
  const op = await semel.submit('menu-export', MENU)
  await view(op, v => v.connection == 'live')
  server.set(op.id, { state: 'needs_reconciliation' })
  const doubt = await view(op, 'needs_reconciliation')
  assert.equal(doubt.settled, false)
  server.set(op.id, { state: 'succeeded', result: {} })
  assert.equal((await op.settled).phase, 'done')
})

test('params that are no JSON value are refused before anything is stored', async t => {
  const { semel } = await setup(t)
  await assert.rejects(semel.submit('note', undefined), { name: 'SemelError', code: 'invalid-params' })
  assert.deepEqual(await semel.pending(), [])
})

test('a mistake in a listener does not stop the work', async t => {
  const { semel } = await setup(t)
  const op = await semel.submit('menu-export', MENU)
  const reported = []
  // Stays: the test's own client is closed after it.
  globalThis.reportError = error => reported.push(error.message)
  op.on(() => { throw new Error('mine') })
  semel.on(() => { throw new Error('also mine') })
  await view(op, 'accepted')
  assert.ok(reported.includes('mine') && reported.includes('also mine'))
})

test('the views can be read in a loop, which ends', async t => {
  const { server, semel } = await setup(t)
  const op = await semel.submit('menu-export', MENU)
  let last
  for await (const v of op) {
    if (v.connection == 'live' && v.phase == 'accepted') finish(server, op)
    last = v
  }
  assert.equal(last.phase, 'done')
})

test('a fetch or a token that never answers is not waited for without end', async t => {
  const { server, semel, clock, tab } = await setup(t, { fetch: () => new Promise(() => {}) })
  const op = await semel.submit('menu-export', MENU)
  await clock.fire('answer')
  await view(op, 'unconfirmed')
  await semel.close()
  tab.kill()
  const next = new Profile(t, server).tab({ token: () => new Promise(() => {}) })
  await next.semel.submit('menu-export', MENU)
  await next.semel.close()
})

test('history is the server\'s list, page by page', async t => {
  const { semel } = await setup(t)
  for (const text of ['a', 'b', 'c']) await view(await semel.submit('note', { text }), 'accepted')
  const first = await semel.history('note', { pageSize: 2 })
  assert.equal(first.operations.length, 2)
  const second = await semel.history('note', { pageSize: 2, pageToken: first.nextPageToken })
  assert.equal(second.operations.length, 1)
  assert.equal(second.nextPageToken, undefined)
  await semel.setToken('nobody')
  await assert.rejects(semel.history('note'), { code: 'unauthenticated' })
})
