import assert from 'node:assert/strict'
import { test } from 'node:test'
import { finish, phase, press, setup } from './support.js'

test('an answer lost after the commit, and a reload in the middle: one operation', async t => {
  const { server, tab, errors } = await setup(t)
  const page = await tab('/?patient') // else the doubt would be over after a while
  // After the first bytes of an answer: else Chromium itself sends it again, on a reused connection.
  server.fault('PUT', 'half')
  server.fault('GET', { wait: new Promise(() => {}) }, /menu-export/)
  const id = await press(page, 'Menu')
  await phase(page, 'unconfirmed')
  await server.saw('GET', 1, /menu-export/)
  await page.reload()
  await page.waitForFunction(() => window.ready)
  assert.deepEqual(await page.evaluate(() => window.resumed), [id])
  await phase(page, 'accepted')
  finish(server)
  await phase(page, 'done')
  await page.reload()
  await phase(page, 'done')
  assert.equal(server.created, 1)
  assert.equal(server.count('PUT'), 1)
  assert.deepEqual(errors, [])
})

test('a double click, and the back of a double click', async t => {
  const { server, tab } = await setup(t)
  const page = await tab()
  const ids = await page.evaluate(() => Promise.all([window.press('Menu'), window.press('Menu'), window.press('Menu')]))
  assert.equal(new Set(ids).size, 1)
  await phase(page, 'accepted')
  finish(server)
  await phase(page, 'done')
  assert.equal(await press(page, 'Menu'), ids[0])
  assert.notEqual(await press(page, 'Menu', { again: ids[0] }), ids[0])
  await phase(page, 'accepted')
  assert.equal(server.created, 2)
})

for (const insecure of [false, true]) {
  const world = insecure ? 'without Web Locks' : 'with Web Locks'

  test(`five tabs press at once, ${world}: one operation, one transmission at a time`, async t => {
    const { server, tab, errors } = await setup(t, { insecure })
    server.fault('PUT', 'refuse')
    const pages = []
    for (let i = 0; i < 5; i++) pages.push(await tab())
    assert.equal(await pages[0].evaluate(() => isSecureContext && !!navigator.locks), !insecure)
    const ids = await Promise.all(pages.map(page => press(page, 'Menu')))
    assert.equal(new Set(ids).size, 1)
    await Promise.all(pages.map(page => phase(page, 'accepted')))
    finish(server)
    await Promise.all(pages.map(page => phase(page, 'done')))
    assert.equal(server.created, 1)
    assert.equal(server.overlap, 1)
    assert.deepEqual(errors, [])
  })

  test(`the process of the sending tab is killed, ${world}: another tab goes on`, async t => {
    const { server, context, tab } = await setup(t, { insecure })
    server.fault('PUT', { hold: new Promise(() => {}) })
    const first = await tab()
    const id = await press(first, 'Menu')
    await server.saw('PUT')
    const second = await tab()
    assert.deepEqual(await second.evaluate(() => window.resumed), [id])
    const session = await context.newCDPSession(first)
    session.send('Page.crash').catch(() => {})
    await phase(second, 'accepted')
    finish(server)
    await phase(second, 'done')
    assert.equal(server.created, 1)
    assert.equal(server.count('PUT'), 1)
  })
}

for (const insecure of [false, true]) {
  const world = insecure ? 'without Web Locks' : 'with Web Locks'

  test(`eight tabs follow a task each over HTTP/1.1, ${world}: a ninth still gets through`, async t => {
    const { server, context, tab, errors } = await setup(t, { insecure })
    // Chromium without a screen calls every tab visible; a person looks at one.
    await context.addInitScript(() => {
      Object.defineProperty(document, 'visibilityState', { get: () => window.away ? 'hidden' : 'visible' })
      window.leave = () => {
        window.away = true
        document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))
      }
    })
    const pages = []
    for (let i = 1; i <= 8; i++) {
      const page = await tab('/?patient')
      await press(page, `Menu ${i}`)
      // Followed, one way or the other.
      await page.waitForFunction(() => window.op.view.phase == 'accepted' && window.op.view.connection != 'asking')
      await page.evaluate(() => window.leave())
      pages.push(page)
    }
    const ninth = await tab('/?patient')
    await press(ninth, 'Menu 9')
    await phase(ninth, 'accepted')
    assert.equal(await ninth.evaluate(() => window.op.view.attempts), 1)
    assert.equal(server.created, 9)
    finish(server)
    for (const page of [...pages, ninth]) {
      await page.evaluate(() => window.op.check())
      await phase(page, 'done')
    }
    assert.deepEqual(errors, [])
  })
}

test('offline, then online', async t => {
  const { server, context, tab } = await setup(t)
  const page = await tab()
  await context.setOffline(true)
  await press(page, 'Menu')
  await page.waitForFunction(() => window.op.view.connection == 'offline')
  await context.setOffline(false)
  await phase(page, 'accepted')
  assert.equal(server.created, 1)
})

test('the server is away, and comes back', async t => {
  const { server, tab } = await setup(t)
  const page = await tab()
  await press(page, 'Menu')
  await page.waitForFunction(() => window.op.view.connection == 'live')
  await server.stop()
  await page.waitForFunction(() => window.op.view.problem?.code == 'no-answer')
  await server.start()
  await page.waitForFunction(() => window.op.view.connection == 'live' && !window.op.view.problem)
  finish(server)
  await phase(page, 'done')
  assert.equal(server.created, 1)
})

test('away and back again: the page comes from the back/forward cache and goes on', async t => {
  const { server, tab, origin } = await setup(t, { ignoreDefaultArgs: ['--disable-back-forward-cache'] })
  const page = await tab()
  await press(page, 'Menu')
  await page.waitForFunction(() => window.op.view.connection == 'live')
  await page.evaluate(() => {
    window.mark = 'kept'
    addEventListener('pageshow', event => window.persisted = event.persisted)
  })
  await page.goto(`${origin}/away`)
  finish(server)
  await page.goBack({ waitUntil: 'commit' })
  await phase(page, 'done')
  assert.equal(await page.evaluate(() => window.mark), 'kept', 'it was in the cache: nothing of ours keeps it out')
  assert.equal(await page.evaluate(() => window.persisted), true)
  assert.equal(server.count('PUT'), 1)
})

test('storage cleared: nothing is created by itself', async t => {
  const { server, context, tab, origin } = await setup(t)
  const page = await tab()
  await press(page, 'Menu')
  await phase(page, 'accepted')
  const session = await context.newCDPSession(page)
  await page.goto(`${origin}/away`)
  await session.send('Storage.clearDataForOrigin', { origin, storageTypes: 'all' })
  await page.goto(origin)
  await page.waitForFunction(() => window.ready)
  assert.deepEqual(await page.evaluate(() => window.resumed), [])
  assert.equal(await page.evaluate(() => window.op), undefined)
  assert.equal(server.count('PUT'), 1)
})

test('another account on the same device sees nothing of it', async t => {
  const { server, tab } = await setup(t)
  const page = await tab()
  await press(page, 'Menu')
  await phase(page, 'accepted')
  const other = await tab('/?account=globex')
  assert.deepEqual(await other.evaluate(() => window.resumed), [])
  await press(other, 'Menu')
  await phase(other, 'accepted')
  assert.equal(server.created, 2)
  const owners = [...server.operations.values()].map(o => o.key.account).sort()
  assert.deepEqual(owners, ['acme', 'globex'])
})

test('a slow line: nothing is sent twice at a time', async t => {
  const { server, context, tab } = await setup(t)
  const page = await tab()
  const session = await context.newCDPSession(page)
  await session.send('Network.enable')
  await session.send('Network.emulateNetworkConditions', { offline: false, latency: 400, downloadThroughput: 50_000, uploadThroughput: 50_000 })
  await press(page, 'x'.repeat(60_000))
  await phase(page, 'accepted')
  finish(server)
  await phase(page, 'done')
  assert.equal(server.created, 1)
  assert.equal(server.overlap, 1)
})

test('without IndexedDB: localStorage, with the same promises', async t => {
  const { server, context, tab } = await setup(t)
  await context.addInitScript(() => Object.defineProperty(window, 'indexedDB', { get() { throw new DOMException('no', 'SecurityError') } }))
  server.fault('PUT', 'cut')
  const pages = [await tab(), await tab(), await tab()]
  assert.equal(await pages[0].evaluate(() => window.semel.storage()), 'localstorage')
  const ids = await Promise.all(pages.map(page => press(page, 'Menu')))
  assert.equal(new Set(ids).size, 1)
  await pages[0].reload()
  await Promise.all(pages.map(page => phase(page, 'accepted')))
  assert.equal(server.created, 1)
})
