/**
 * Measures the core as a browser would load it, minified and compressed, and fails above the
 * limit. Minified for measuring only: what is published is the source.
 *
 *     npm run size
 */

import { build } from 'esbuild'
import { gzipSync } from 'node:zlib'
import { fileURLToPath } from 'node:url'

export const LIMIT = 8000

/** Bytes of an entry and all that it loads at once. What it loads later is listed apart. */
export async function measure(entry) {
  const { outputFiles } = await build({
    entryPoints: { entry: fileURLToPath(new URL(`../src/${entry}`, import.meta.url)) },
    bundle: true, minify: true, splitting: true, format: 'esm', target: 'es2022', write: false, outdir: '/',
  })
  const text = file => new TextDecoder().decode(file.contents)
  const found = name => outputFiles.find(file => file.path.endsWith(name))
  const first = new Set()
  const add = file => {
    if (!file || first.has(file)) return
    first.add(file)
    for (const [, name] of text(file).matchAll(/(?:from|import)\s*"\.\/([^"]+)"/g)) add(found(name))
  }
  add(found('entry.js'))
  const bytes = files => gzipSync(files.map(text).join(''), { level: 9 }).length
  return { now: bytes([...first]), later: bytes(outputFiles.filter(file => !first.has(file))) }
}

if (process.argv[1] == fileURLToPath(import.meta.url)) {
  const core = await measure('index.js')
  const element = await measure('element.js')
  console.log(`core:    ${core.now} bytes minified and gzipped (limit ${LIMIT})`)
  console.log(`         ${core.later} more where there is no IndexedDB`)
  console.log(`element: ${element.now} bytes, with its messages`)
  if (core.now > LIMIT) {
    console.error(`the core is ${core.now - LIMIT} bytes too large`)
    process.exit(1)
  }
}
