import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { IDBFactory, IDBKeyRange } from 'fake-indexeddb'
import { fakeServer } from './support/server.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const read = name => readFileSync(root + name, 'utf8')
const sources = readdirSync(root + 'src').map(name => [name, read(`src/${name}`)])

/** Without comments. */
const code = text => text.replace(/\/\*[^]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '')

test('no dependency at run time', () => {
  const { dependencies, peerDependencies } = JSON.parse(read('package.json'))
  assert.equal(dependencies ?? peerDependencies, undefined)
  for (const [name, text] of sources) {
    for (const [, from] of code(text).matchAll(/(?:from|import\()\s*'([^']+)'/g)) {
      assert.match(from, /^\.\/[a-z]+\.js$/, name)
    }
  }
})

test('nothing that a strict Content-Security-Policy or Trusted Types would stop', () => {
  for (const [name, text] of sources) {
    assert.doesNotMatch(code(text), /\beval\(|new Function|innerHTML|outerHTML|insertAdjacentHTML|\.style\b|setAttribute\('(style|on)|javascript:/, name)
  }
})

test('files stay of one idea', () => {
  for (const [name, text] of sources) assert.ok(text.split('\n').length <= 400, name)
})

test('no host of a package registry in what is committed', () => {
  for (const name of ['package.json', 'package-lock.json', '.npmrc', 'README.md']) {
    // Where a maintainer takes donations is in the lock file too.
    const text = read(name).replace(/"funding": (\{[^}]*\}|\[[^\]]*\])/g, '')
    assert.doesNotMatch(text, /registry\.|"resolved"|https?:\/\/(?!github\.com\/semel-dev)/, name)
  }
})

test('what is published', () => {
  const [{ files }] = JSON.parse(execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: root, stdio: 'pipe' }))
  const names = files.map(file => file.path)
  for (const name of ['LICENSE', 'README.md', 'package.json', 'src/index.js', 'src/element.js', 'types/index.d.ts', 'types/element.d.ts']) {
    assert.ok(names.includes(name), name)
  }
  assert.ok(names.every(name => /^(src|types)\/|^(LICENSE|README\.md|package\.json)$/.test(name)), `${names}`)
})

test('a TypeScript page compiles against the generated types', () => {
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')
  execFileSync(process.execPath, [tsc, '-p', `${root}test/types`], { stdio: 'pipe' })
})

test('the examples of the README run', async t => {
  const server = await fakeServer(t)
  const real = globalThis.fetch
  const failed = []
  const set = (name, value) => {
    const before = Object.getOwnPropertyDescriptor(globalThis, name)
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true })
    t.after(() => before ? Object.defineProperty(globalThis, name, before) : delete globalThis[name])
  }
  set('location', { origin: server.url })
  set('IDBKeyRange', IDBKeyRange)
  set('BroadcastChannel', undefined)
  // The cookie of a signed-in person.
  set('fetch', (url, init) => real(url, {
    ...init,
    headers: init.headers.some(([name]) => name == 'authorization') ? init.headers : [...init.headers, ['authorization', 'Bearer token-acme']],
  }))
  set('show', view => {
    if (view.connection == 'live' && view.phase == 'accepted') server.set(view.id, { state: 'succeeded', result: {} })
  })
  set('console', { ...console, assert: (ok, ...words) => ok || failed.push(words) })
  const clients = []
  set('register', client => clients.push(client))
  t.after(() => Promise.all(clients.map(client => client.close())))

  const blocks = [...read('README.md').matchAll(/^```js\n([^]*?)^```/gm)].map(([, text]) => text)
  assert.ok(blocks.length >= 5)
  for (const [i, block] of blocks.entries()) {
    set('indexedDB', new IDBFactory())
    const file = `${root}test/support/.readme-${i}.mjs`
    t.after(() => rmSync(file, { force: true }))
    writeFileSync(file, block + (block.includes('const semel') ? '\nregister(semel)\n' : ''))
    await import(pathToFileURL(file))
  }
  assert.deepEqual(failed, [])
  assert.ok(server.created >= 4)
})
