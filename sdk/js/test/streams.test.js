/** A browser opens six connections to a host over HTTP/1.1, and a stream keeps one: who may have one. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeServer } from './support/server.js'
import { gate, Profile, view } from './support/world.js'

async function setup(t, parts) {
  const server = await fakeServer(t)
  const profile = new Profile(t, server, parts)
  return { server, profile, clock: profile.clock }
}

const note = text => ['note', { text }]
const live = op => view(op, v => v.connection == 'live')
/** It was looked up, and is looked up again: there was no stream for it. */
const polled = async (server, op) => {
  await view(op, 'accepted')
  const path = new RegExp(`${op.id}$`)
  await server.saw('GET', server.count('GET', path) + 2, path)
}
const opened = server => server.count('GET', /events$/)
const done = { state: 'succeeded', result: 1 }

test('eight tabs with a task each share three event streams, and the others look up', async t => {
  const { server, profile } = await setup(t)
  const tabs = [1, 2, 3, 4, 5, 6, 7, 8].map(n =>
    profile.tab(n % 2 ? {} : { account: 'globex', token: 'token-globex' }))
  const ops = []
  for (const [i, { semel }] of tabs.entries()) {
    const op = await semel.submit(...note(`${i}`))
    await (i < 3 ? live(op) : polled(server, op))
    ops.push(op)
  }
  assert.equal(server.most, 3)
  assert.equal(opened(server), 3)

  // What is over leaves its permit to somebody who waits.
  server.set(ops[0].id, done)
  await server.saw('GET', 4, /events$/)
  await ops[0].settled
  // So does a tab that is gone.
  tabs[1].kill()
  await server.saw('GET', 5, /events$/)

  for (const op of ops.slice(1)) server.set(op.id, done)
  for (const op of ops.slice(2)) assert.equal((await op.settled).phase, 'done')
  assert.equal(server.created, 8)
})

test('one tab leaves a permit for the others, whatever it follows', async t => {
  const { server, profile } = await setup(t)
  const { semel } = profile.tab()
  await live(await semel.submit(...note('a')))
  await live(await semel.submit(...note('b')))
  await polled(server, await semel.submit(...note('c')))
  await live(await profile.tab().semel.submit(...note('d')))
  assert.equal(server.most, 3)
})

test('no event streams at all, if that is wanted', async t => {
  const { server, profile } = await setup(t)
  const op = await profile.tab({ streams: 0 }).semel.submit(...note('a'))
  await polled(server, op)
  assert.equal(opened(server), 0)
})

for (const [name, act, phase] of [
  ['"stop" is pressed', op => (op.abandon(), view(op, v => v.abandoning)), 'abandoned'],
  ['"look now" is pressed', (op, server) => (server.set(op.id, done), op.check()), 'done'],
]) {
  test(`${name} while a permit is asked for: it is heard`, async t => {
    const { server, profile } = await setup(t)
    let tokens = 0
    const tab = profile.tab({ token: () => (tokens++, 'token-acme') })
    const [asked, slow] = [gate(), gate()]
    const { request } = tab.env.locks
    tab.env.locks.request = async (name, options, work) => {
      if (options.ifAvailable) {
        asked.open()
        await slow.promise
      }
      return request(name, options, work)
    }
    const op = await tab.semel.submit(...note('a'))
    await asked.promise
    await act(op, server)
    slow.open()
    assert.equal((await op.settled).phase, phase)
    assert.equal(opened(server), 0)
    assert.equal(tokens, server.requests.length, 'nor was one begun')
  })
}

test('a browser that refuses the permit: it is looked up', async t => {
  const { server, profile } = await setup(t)
  const tab = profile.tab()
  const { request } = tab.env.locks
  tab.env.locks.request = (name, options, work) => options.ifAvailable
    ? Promise.reject(new DOMException('not here', 'SecurityError'))
    : request(name, options, work)
  const problems = []
  tab.semel.on(({ view }) => view.problem && problems.push(view.problem))
  const op = await tab.semel.submit(...note('a'))
  await polled(server, op)
  assert.deepEqual(problems, [])
  server.set(op.id, done)
  assert.equal((await op.settled).phase, 'done')
  assert.equal(opened(server), 0)
})

test('without Web Locks: one stream, and only while the tab is looked at', async t => {
  const { server, profile } = await setup(t, { locks: false })
  const tab = profile.tab()
  const first = await tab.semel.submit(...note('a'))
  await live(first)
  const second = await tab.semel.submit(...note('b'))
  await polled(server, second)
  assert.equal(opened(server), 1)

  tab.hidden = true
  tab.event('visibilitychange')
  await polled(server, first)
  assert.equal(server.streams, 0)
  assert.equal(opened(server), 1)

  tab.hidden = false
  tab.event('visibilitychange')
  await server.saw('GET', 2, /events$/)
  for (const op of [first, second]) server.set(op.id, done)
  for (const op of [first, second]) assert.equal((await op.settled).phase, 'done')
  assert.equal(server.most, 1)
})

test('opened in the background, without Web Locks: no stream', async t => {
  const { server, profile } = await setup(t, { locks: false })
  const tab = profile.tab()
  tab.hidden = true
  const op = await tab.semel.submit(...note('a'))
  await polled(server, op)
  assert.equal(opened(server), 0)
})
