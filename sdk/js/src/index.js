/**
 * `@semel/browser`: ask as often as you like; it happens once, and nobody guesses.
 *
 * ```js
 * const semel = createClient({ account: 'acme' })
 * await semel.resume()
 * const op = await semel.submit('menu-export', { title: 'Menu' })
 * for await (const view of op) console.log(view.phase)
 * ```
 *
 * Reading the source: `rules.js` says what to do next and what an answer proves; `drafts.js`
 * whether a press is a new intent; `work.js` does it; `keeper.js` keeps store, tabs and work in
 * step; the rest is one technology each.
 *
 * @module
 */

export { createClient, SemelError } from './client.js'
export { OperationHandle } from './operation.js'
export { newId } from './ids.js'
export { createParser } from './events.js'
export { memoryStore } from './storage.js'

/**
 * @typedef {import('./client.js').Client} Client
 * @typedef {import('./types.js').ClientOptions} ClientOptions
 * @typedef {import('./types.js').SubmitOptions} SubmitOptions
 * @typedef {import('./types.js').Timeouts} Timeouts
 * @typedef {import('./types.js').View} View
 * @typedef {import('./types.js').Phase} Phase
 * @typedef {import('./types.js').Operation} Operation
 * @typedef {import('./types.js').Progress} Progress
 * @typedef {import('./types.js').Problem} Problem
 * @typedef {import('./types.js').Draft} Draft
 * @typedef {import('./types.js').Box} Box
 * @typedef {import('./types.js').Store} Store
 * @typedef {import('./types.js').Clock} Clock
 * @typedef {import('./types.js').Env} Env
 */
