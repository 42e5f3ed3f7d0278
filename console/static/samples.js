// Samples of the counts and counters, taken while the console is open and kept in
// this tab, so that a change of view loses nothing. The counts are the store's; the
// counters are those of the node that answered, which the time it was started tells
// from the others behind the same address.

import { api } from './api.js'

const KEEP = 240
/** @typedef {{at: number, node: number, accepts: number, replays: number, retries: number, lost: number, unknown: number, unreconciled: number, states: Record<string, number>}} Sample */
/** @type {Sample[]} */
const samples = read()

function read() {
  try {
    return JSON.parse(sessionStorage.getItem('semel-console-samples') || '[]').filter((/** @type {any} */ s) => s.states)
  } catch {
    return []
  }
}

/** Adds up one metric over all its labels. @param {string} text @param {string} name */
function sum(text, name) {
  let total = 0
  for (const line of text.split('\n')) {
    const found = /^(\w+)(?:\{.*\})? (\S+)$/.exec(line)
    if (found && found[1] === name) total += Number(found[2])
  }
  return total
}

/** Takes one sample, and returns all of them. @param {any} asked the counts of now, or a promise of them @returns {Promise<Sample[]>} */
export async function sample(asked) {
  const [stats, text] = await Promise.all([asked, api.metrics()])
  /** @type {Record<string, number>} */
  const states = {}
  for (const kind of stats.kinds) {
    for (const [state, n] of Object.entries(kind.states || {})) states[state] = (states[state] || 0) + Number(n)
  }
  samples.push({
    at: Date.now(),
    node: sum(text, 'process_start_time_seconds'),
    states,
    accepts: sum(text, 'semel_accepts_total'),
    replays: sum(text, 'semel_replays_total'),
    retries: sum(text, 'semel_retries_total'),
    lost: sum(text, 'semel_lease_losses_total'),
    unknown: sum(text, 'semel_needs_reconciliation_total'),
    unreconciled: stats.kinds.reduce((/** @type {number} */ n, /** @type {any} */ k) => n + k.unreconciled, 0),
  })
  samples.splice(0, samples.length - KEEP)
  sessionStorage.setItem('semel-console-samples', JSON.stringify(samples))
  return samples
}

/**
 * What a counter rose by, per second: each sample with the latest one of the same
 * node, since two nodes' counters have nothing to do with each other.
 * @param {Sample[]} all
 * @param {'accepts'|'replays'|'retries'|'lost'|'unknown'} name
 */
export function rate(all, name) {
  const latest = new Map()
  return all.flatMap(s => {
    const before = latest.get(s.node)
    latest.set(s.node, s)
    return before ? [{ at: s.at, value: Math.max(0, s[name] - before[name]) / Math.max(0.001, (s.at - before.at) / 1000) }] : []
  })
}

/** How many are in a state. @param {Sample[]} all @param {string} state */
export const level = (all, state) => all.map(s => ({ at: s.at, value: s.states[state] || 0 }))

/** How many more, or fewer, than at first. @param {Sample[]} all @param {string} state */
export const change = (all, state) => level(all, state).map((p, _, [first]) => ({ at: p.at, value: p.value - first.value }))

/** How many nodes have answered. @param {Sample[]} all */
export const nodes = all => new Set(all.map(s => s.node)).size
