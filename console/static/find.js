// Finding an operation by its ID alone. The interface knows operations by their
// whole key, so every account and kind that it may be in is asked.

import { api, Problem } from './api.js'

const MOST = 120 // places for one ID
const AT_ONCE = 6
const NEWEST = '1000'

/** Whether it can be an operation ID at all. @param {string} text */
export const isID = text => /^[A-Za-z0-9._~-]{1,128}$/.test(text) && text !== '.' && text !== '..'

/** @param {string[]} names */
const unique = names => [...new Set(names)]

/**
 * Looks for an ID in one account or all that the operator sees, in one kind or all.
 * Who sees every account has no list of them: then it is those of the newest
 * operations, and `guessed` says so. `expired` says that some place answered that
 * the ID is older than what is remembered, which proves neither way. `left` is how
 * many places were not asked.
 * @param {string} id
 * @param {{account: string, kind: string}} within empty for all
 * @param {string[]} sees the operator's accounts
 * @param {AbortSignal} signal
 */
export async function find(id, { account, kind }, sees, signal) {
  const guessed = !account && sees.includes('*')
  const [newest, known] = await Promise.all([
    guessed ? api.list({ page_size: NEWEST, kind }).then(page => page.operations) : [],
    kind ? [kind] : api.kinds().then(all => all.kinds.map((/** @type {any} */ k) => k.kind)),
  ])
  const named = account ? [account] : sees.filter(a => a !== '*')
  const accounts = unique([...named, ...newest.map((/** @type {any} */ op) => op.key.account)])
  const kinds = unique([...known, ...newest.map((/** @type {any} */ op) => op.key.kind)])
  const all = accounts.flatMap(a => kinds.map(k => ({ account: a, kind: k, id })))
  const places = all.slice(0, MOST)
  /** @type {any[]} */
  const found = []
  let expired = false
  const look = async (/** @type {any} */ key) => {
    try {
      found.push(await api.get(key))
    } catch (problem) {
      if (!(problem instanceof Problem) || ![400, 404, 410].includes(problem.status)) throw problem
      expired ||= problem.status === 410
    }
  }
  for (let n = 0; n < places.length && !signal.aborted; n += AT_ONCE) await Promise.all(places.slice(n, n + AT_ONCE).map(look))
  return { found, expired, guessed, places, left: all.length - places.length }
}
