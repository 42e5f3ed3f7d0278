import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { finish, phase, press, setup } from './support.js'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** A view of every phase, for looks. */
const STATES = ['sending', 'unconfirmed', 'accepted', 'processing', 'needs_reconciliation', 'done', 'failed',
  'abandoned', 'rejected', 'expired', 'conflict']

/** Shows a made-up view. */
const pretend = (page, phase, more = {}) => page.evaluate(([phase, more]) => {
  const settled = ['done', 'failed', 'abandoned', 'rejected', 'expired', 'conflict'].includes(phase)
  const view = {
    id: 'x', kind: 'note', phase, settled, since: 0, attempts: 1, recorded: 'unknown', connection: 'waiting',
    abandoning: false, durable: true, ...more,
  }
  const calls = window.calls = []
  document.querySelector('semel-operation').operation = {
    view,
    on(listener) {
      listener(view)
      return () => {}
    },
    check: () => calls.push('check'),
    abandon: async () => calls.push('abandon'),
  }
}, [phase, more])

const title = page => page.locator('semel-operation .title[role=status]')

test('state, progress and result of a real operation, under a strict policy', async t => {
  const { server, tab, errors } = await setup(t)
  const page = await tab()
  const id = await press(page, 'Menu')
  await page.waitForFunction(() => window.op.view.connection == 'live')
  assert.equal(await title(page).textContent(), 'Accepted.')
  server.set(id, { state: 'processing', progress: { fraction: 0.25, note: 'drawing' } })
  await phase(page, 'processing')
  const bar = page.getByRole('progressbar', { name: 'Progress: drawing' })
  assert.equal(await bar.evaluate(e => e.value), 0.25)
  server.set(id, { state: 'succeeded', result: 1 })
  await phase(page, 'done')
  assert.equal(await title(page).textContent(), 'Done.')
  assert.deepEqual(errors, [])
})

test('the agreed words, in the language of the page or of the element', async t => {
  const { tab } = await setup(t)
  const page = await tab()
  await pretend(page, 'unconfirmed')
  assert.equal(await title(page).textContent(), 'No confirmation yet. Looking this task up.')
  await page.evaluate(() => document.querySelector('semel-operation').lang = 'zh-CN')
  assert.equal(await title(page).textContent(), '暂时没有收到确认，正在查询这次任务。')
  await page.evaluate(() => {
    document.querySelector('semel-operation').removeAttribute('lang')
    document.documentElement.lang = 'zh'
  })
  await pretend(page, 'done')
  assert.equal(await title(page).textContent(), '已完成。')
})

test('everything can be done from the keyboard, and focus is not lost', async t => {
  const { tab } = await setup(t)
  const page = await tab()
  await pretend(page, 'unconfirmed')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Space')
  assert.deepEqual(await page.evaluate(() => window.calls), ['check', 'abandon'])
  await pretend(page, 'processing', { connection: 'live' })
  const focused = await page.evaluate(() => document.querySelector('semel-operation').shadowRoot.activeElement?.className)
  assert.equal(focused, 'title')
  await pretend(page, 'done')
  await page.keyboard.press('Tab')
  await page.evaluate(() => addEventListener('semel-again', e => window.asked = !!e.detail))
  await page.keyboard.press('Enter')
  await page.waitForFunction(() => window.asked)
})

test('the second click of a double click is not heard by a button that has come into its place', async t => {
  const { tab } = await setup(t)
  const page = await tab()
  await pretend(page, 'done')
  await page.evaluate(() => addEventListener('semel-again', () => window.asked = (window.asked ?? 0) + 1))
  const { x, y, width, height } = await page.getByRole('button', { name: 'Make a new one' }).boundingBox()
  const press = async clickCount => {
    await page.mouse.down({ clickCount })
    await page.mouse.up({ clickCount })
  }
  await page.mouse.move(x + width / 2, y + height / 2)
  await press(1)
  await pretend(page, 'unconfirmed')
  assert.match(await page.evaluate(([x, y]) => document.elementFromPoint(x, y).shadowRoot.elementFromPoint(x, y).textContent, [x + width / 2, y + height / 2]), /Look now|Stop/)
  await press(2)
  assert.deepEqual(await page.evaluate(() => [window.asked, window.calls]), [1, []])
  await press(1)
  assert.equal(await page.evaluate(() => window.calls.length), 1)
})

test('"needs checking" and "unconfirmed" have no button for a new one', async t => {
  const { tab } = await setup(t)
  const page = await tab()
  for (const state of ['needs_reconciliation', 'unconfirmed']) {
    await pretend(page, state)
    assert.equal(await page.getByRole('button', { name: 'Make a new one' }).count(), 0, state)
  }
})

test('a change of state does not move what is around', async t => {
  const { tab } = await setup(t, { viewport: { width: 1000, height: 800 } })
  const page = await tab()
  const heights = new Set()
  for (const state of STATES) {
    await pretend(page, state)
    heights.add((await page.locator('semel-operation').boundingBox()).height)
  }
  assert.equal(heights.size, 1, `${[...heights]}`)
})

for (const colorScheme of ['light', 'dark']) {
  test(`axe finds nothing, in any state, narrow and wide (${colorScheme})`, async t => {
    const { tab } = await setup(t, { colorScheme })
    const page = await tab()
    if (colorScheme == 'dark') {
      await page.evaluate(() => {
        const sheet = new CSSStyleSheet()
        sheet.replaceSync(':root { color-scheme: dark; background: #000; color: #fff }')
        document.adoptedStyleSheets = [sheet]
      })
    }
    await page.evaluate(axe)
    for (const width of [320, 1200]) {
      await page.setViewportSize({ width, height: 800 })
      for (const state of STATES) {
        for (const lang of ['en', 'zh']) {
          await page.evaluate(lang => document.documentElement.lang = lang, lang)
          await pretend(page, state, { error: { code: 'x', message: 'out of paper' } })
          const { violations } = await page.evaluate(() => window.axe.run())
          assert.deepEqual(violations.map(v => [v.id, v.nodes.map(n => n.html)]), [], `${state} ${lang} ${width}`)
          const wide = await page.evaluate(() => document.documentElement.scrollWidth)
          assert.ok(wide <= width, `${state} ${lang}: ${wide} > ${width}`)
        }
      }
    }
  })
}

test('hostile words stay words', async t => {
  const { server, tab, errors } = await setup(t)
  const page = await tab()
  const words = '<img src=x onerror=alert(1)>\u202e😀' + 'W'.repeat(60_000)
  const id = await press(page, 'Menu')
  await phase(page, 'accepted')
  server.set(id, { state: 'failed', error: { code: 'x', message: words } })
  await phase(page, 'failed')
  const shown = await page.evaluate(() => {
    const root = document.querySelector('semel-operation').shadowRoot
    return { text: root.querySelector('.reason').textContent, images: root.querySelectorAll('img').length }
  })
  assert.equal(shown.text, words)
  assert.equal(shown.images, 0)
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth))
  assert.deepEqual(errors, [])
  finish(server)
})
