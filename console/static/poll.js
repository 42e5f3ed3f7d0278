// Asking again and again, calmly: what gets no answer is asked again, later and
// later, and people are told how old is what they see.

import { Problem } from './api.js'

const LONGEST = 15000

/** Waits, or until the view is left. @param {number} ms @param {AbortSignal} signal @returns {Promise<void>} */
const pause = (ms, signal) => new Promise(resolve => {
  const timer = setTimeout(resolve, ms)
  signal.addEventListener('abort', () => { clearTimeout(timer); resolve() }, { once: true })
})

/** Whether a failure says nothing but "not now". @param {unknown} problem */
export const passing = problem => problem instanceof Problem && (problem.status === 0 || problem.status === 429 || problem.status >= 500)

/**
 * Asks until there is an answer; heard is told each time whether there was one.
 * @template T
 * @param {() => Promise<T>} ask
 * @param {{signal: AbortSignal, heard: (answered: boolean) => void}} context
 * @returns {Promise<T|undefined>} undefined once the view is left
 */
export async function insist(ask, { signal, heard }) {
  for (let wait = 500; !signal.aborted; wait = Math.min(2 * wait, LONGEST)) {
    try {
      const answer = await ask()
      if (signal.aborted) return undefined
      heard(true)
      return answer
    } catch (problem) {
      if (signal.aborted) return undefined
      if (!passing(problem)) throw problem
      heard(false)
    }
    await pause(wait * (0.75 + Math.random() / 2), signal)
  }
  return undefined
}

/**
 * Does it every so many milliseconds, until the view is left or it fails for good.
 * What takes the server long is asked for less often, but not rarely.
 * @param {() => Promise<any>} ask
 * @param {number} every
 * @param {{signal: AbortSignal, heard: (answered: boolean) => void, fail: (problem: unknown) => void}} context
 */
export async function repeat(ask, every, context) {
  try {
    for (let took = 0; ;) {
      await pause(Math.max(every, Math.min(20 * took, LONGEST)), context.signal)
      if (context.signal.aborted) return
      const began = performance.now()
      await insist(ask, context)
      took = performance.now() - began
    }
  } catch (problem) {
    context.fail(problem)
  }
}
