/** Somebody else's page, which takes the package from Vite: built, and while it is developed. */

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { build, createServer } from 'vite'
import { finish, phase, setup } from './support.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

const MAIN = `
import { createClient } from '@semel/browser'
import { describe } from '@semel/browser/messages.js'
import '@semel/browser/element.js'
const semel = createClient({ account: 'acme', token: 'token-acme', server: location.origin })
const op = await semel.submit('menu-export', { title: 'Menu' })
document.querySelector('semel-operation').operation = op
window.op = op
window.says = () => describe(op.view, 'en').title
`

/** A page as somebody else would write it, with the package among its modules. */
function somebodysPage(t) {
  const dir = mkdtempSync(join(tmpdir(), 'semel-vite-'))
  t.after(() => rmSync(dir, { recursive: true }))
  mkdirSync(join(dir, 'node_modules/@semel'), { recursive: true })
  symlinkSync(root, join(dir, 'node_modules/@semel/browser'), 'dir')
  writeFileSync(join(dir, 'package.json'), '{"type":"module","dependencies":{"@semel/browser":"*"}}')
  writeFileSync(join(dir, 'main.js'), MAIN)
  writeFileSync(join(dir, 'index.html'),
    '<!doctype html><html lang="en"><title>Test</title><semel-operation></semel-operation><script type="module" src="/main.js"></script>')
  return dir
}

async function works(page, server) {
  await phase(page, 'accepted')
  finish(server)
  await phase(page, 'done')
  assert.equal(await page.evaluate(() => window.says()), 'Done.')
  assert.equal(await page.locator('semel-operation .title').textContent(), 'Done.')
  assert.equal(server.created, 1)
}

test('built with Vite', async t => {
  const dir = somebodysPage(t)
  await build({ root: dir, configFile: false, logLevel: 'error', build: { target: 'es2022' } })
  const { server, context, errors } = await setup(t)
  const assets = join(dir, 'dist/assets')
  const files = new Map(readdirSync(assets).map(name => [`/assets/${name}`, readFileSync(join(assets, name), 'utf8')]))
  server.site = path => path == '/'
    ? { status: 200, type: 'text/html', body: readFileSync(join(dir, 'dist/index.html'), 'utf8') }
    : files.has(path) ? { status: 200, type: 'text/javascript', body: files.get(path) } : { status: 404 }
  const page = await context.newPage()
  page.on('pageerror', error => errors.push(`${error}`))
  await page.goto(server.url)
  await works(page, server)
  assert.deepEqual(errors, [])
})

test('served by Vite, for development', async t => {
  const { server, context, errors } = await setup(t)
  const vite = await createServer({
    root: somebodysPage(t), configFile: false, logLevel: 'error',
    server: { host: '127.0.0.1', port: 0, proxy: { '/v1': server.url }, fs: { allow: ['/'] } },
  })
  t.after(() => vite.close())
  await vite.listen()
  const page = await context.newPage()
  page.on('pageerror', error => errors.push(`${error}`))
  await page.goto(vite.resolvedUrls.local[0])
  await works(page, server)
  assert.deepEqual(errors, [])
})
