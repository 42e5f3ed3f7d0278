/**
 * Writes types/*.d.ts from the JSDoc in src, for the npm package.
 *
 *     npm run types
 */

import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')
rmSync(`${root}types`, { recursive: true, force: true })
execFileSync(process.execPath, [tsc, '-p', root, '--noEmit', 'false', '--declaration', '--emitDeclarationOnly',
  '--rootDir', `${root}src`, '--outDir', `${root}types`], { stdio: 'inherit' })
