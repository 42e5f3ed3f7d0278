/** A real Chromium, a page under a strict Content-Security-Policy, and the Semel server of the other tests. */

import { existsSync, readFileSync } from 'node:fs'
import { chromium } from 'playwright-core'
import { fakeServer } from '../support/server.js'

const src = new URL('../../src/', import.meta.url)

const POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

const HTML = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Test</title>
<main><h1>Export</h1><semel-operation><output id="result"></output></semel-operation></main>
<script type="module" src="/page.js"></script>
</html>`

/** Times are short, so that what must be waited for does not take long. With "?patient" nothing is given up. */
const PAGE = `
import { createClient } from '/src/index.js'
import '/src/element.js'
const query = new URLSearchParams(location.search)
const account = query.get('account') ?? 'acme'
const patient = { answer: 6e5, silence: 6e5, lease: 6e5, poll: 6e5, cap: 6e5, sync: 6e5 }
export const semel = createClient({
  account, token: 'token-' + account,
  timeouts: { answer: 3000, silence: 1000, backoff: 50, cap: 500, poll: 300, lease: 1500, sync: 200, ...query.has('patient') && patient },
})
const element = document.querySelector('semel-operation')
const show = op => {
  element.operation = op
  window.op = op
}
window.semel = semel
window.press = async (title, options) => {
  const op = await semel.submit('menu-export', { title }, options)
  show(op)
  return op.id
}
const resumed = await semel.resume()
window.resumed = resumed.map(op => op.id)
const current = resumed[0] ?? await semel.current('menu-export')
if (current) show(current)
window.ready = true
`

const FILES = {
  '/': ['text/html; charset=utf-8', HTML],
  '/page.js': ['text/javascript', PAGE],
  '/away': ['text/html; charset=utf-8', '<!doctype html><title>Away</title><h1>Away</h1>'],
}

function site(path) {
  const name = path.startsWith('/src/') ? path.slice(5) : ''
  const [type, body] = FILES[path] ?? (/^[a-z]+\.js$/.test(name) ? ['text/javascript', readFileSync(new URL(name, src), 'utf8')] : [])
  if (!type) return { status: 404 }
  return { status: 200, type, body, headers: { 'content-security-policy': POLICY } }
}

const executablePath = process.env.CHROMIUM ??
  ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync)

/**
 * Starts server and browser; both stop with the test, which fails on any console error.
 *
 * @param {{insecure?: boolean, args?: string[], ignoreDefaultArgs?: string[]}} [options] `insecure`:
 *   the page is not a secure context, so there are no Web Locks
 */
export async function setup(t, { insecure = false, args = [], ignoreDefaultArgs = [], ...contextOptions } = {}) {
  if (!executablePath) throw new Error('no Chromium: install Debian\'s "chromium", or set CHROMIUM')
  const server = await fakeServer(t)
  server.site = site
  const browser = await chromium.launch({
    executablePath, ignoreDefaultArgs,
    args: ['--no-sandbox', '--host-resolver-rules=MAP semel.test 127.0.0.1', ...args],
  })
  t.after(() => browser.close())
  const context = await browser.newContext(contextOptions)
  const origin = insecure ? server.url.replace('127.0.0.1', 'semel.test') : server.url
  const errors = []
  const tab = async (path = '/') => {
    const page = await context.newPage()
    page.on('pageerror', error => errors.push(`${error}`))
    page.on('console', message => {
      // That a request failed is what these tests are about.
      if (message.type() == 'error' && !/Failed to load resource/.test(message.text())) errors.push(message.text())
    })
    await page.goto(origin + path)
    await page.waitForFunction(() => window.ready || location.pathname != '/')
    return page
  }
  return { server, browser, context, tab, errors, origin }
}

/** Waits for a phase of the operation that a page shows. */
export const phase = (page, name) => page.waitForFunction(name => window.op?.view.phase == name, name)

export const press = (page, title, options) => page.evaluate(([title, options]) => window.press(title, options), [title, options])

/** Brings every operation to its end. */
export function finish(server) {
  for (const operation of server.operations.values()) {
    if (operation.state == 'accepted') server.set(operation.key.id, { state: 'succeeded', executions: 1, result: { n: 1 } })
  }
}
