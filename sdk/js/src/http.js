/**
 * One request, one answer, and never an exception: what went wrong is an {@link Answer} too.
 * Nothing is retried here.
 *
 * @module
 */

import { mine } from './rules.js'

/** @import {Answer, Clock, ClientOptions} from './types.js' */

/** Further than this from the server's clock, the device's clock is not believed. */
const SKEW = 60_000

/** @typedef {Record<string, string|false|null|undefined>} Fields headers; the empty ones are left out */

/** @param {ClientOptions} options @param {string} server @param {Clock} clock @param {number} within ms for one answer */
export function createHttp(options, server, clock, within) {
  const { credentials = 'same-origin' } = options
  // Called as a plain function: a browser's fetch refuses any other `this`.
  const send = options.fetch ?? ((url, init) => fetch(url, init))
  let token = options.token
  let skew = 0

  /**
   * Opens a response, to be read as it comes. Rejects when there is none.
   *
   * @param {string} method @param {string} path @param {Fields|undefined} headers
   * @param {string|undefined} body @param {AbortSignal} signal
   */
  async function request(method, path, headers, body, signal) {
    const exchange = async () => {
      const bearer = typeof token == 'function' ? await token() : token
      const all = Object.entries({ ...headers, authorization: bearer && `Bearer ${bearer}` })
      return send(server + path, {
        method,
        headers: /** @type {[string, string][]} */ (all.filter(h => h[1])),
        body,
        signal,
        credentials,
        cache: 'no-store',
        // A redirect would send the request to somebody who did not promise anything.
        redirect: 'error',
      })
    }
    /** @type {Promise<never>} */
    const aborted = new Promise((_, reject) => signal.addEventListener('abort', reject))
    // Whatever is behind a given fetch or token, it is not waited for longer.
    const response = await Promise.race([exchange(), aborted])
    const date = Date.parse(response.headers.get('date') ?? '')
    if (date) skew = date - clock.now()
    return response
  }

  return {
    /** @param {ClientOptions['token']} fresh */
    setToken(fresh) {
      token = fresh
    },

    /** The time, by the server's clock where the device's own is clearly wrong. */
    now: () => clock.now() + (Math.abs(skew) > SKEW ? skew : 0),

    request,

    /**
     * Asks, and reads the whole answer. Never rejects.
     *
     * @param {string} method @param {string} path
     * @param {{signal: AbortSignal, abort: () => void}} link aborted when it is over
     * @param {Fields} [headers] @param {string} [body]
     * @returns {Promise<Answer>}
     */
    async ask(method, path, link, headers, body) {
      const timer = clock.setTimeout(link.abort, within, 'answer')
      try {
        const response = await request(method, path, headers, body, link.signal)
        return read(response, await response.text(), clock)
      } catch {
        return { status: 0, problem: mine('no-answer', 0) }
      } finally {
        clock.clearTimeout(timer)
        link.abort()
      }
    },
  }
}

/**
 * Reads a complete answer. Only problem+json counts as Semel's own refusal: what a proxy says
 * in its own words proves nothing about an operation.
 *
 * @param {Response} response @param {string} text @param {Clock} clock @returns {Answer}
 */
function read(response, text, clock) {
  const { status, headers, ok } = response
  const body = json(text)
  const refusal = !ok && /problem\+json/.test(headers.get('content-type') ?? '') && typeof body?.code == 'string'
  return {
    status,
    body: ok ? body : undefined,
    problem: refusal ? { ...body, status } : undefined,
    etag: headers.get('etag'),
    retryAfter: retryAfter(headers, clock),
  }
}

/** @param {string} text @returns {any} */
export function json(text) {
  try {
    return JSON.parse(text)
  } catch {}
}

/**
 * Retry-After in milliseconds: seconds, or a date (against the server's own Date, so that a
 * wrong device clock does not matter). At most a day.
 *
 * @param {Headers} headers @param {Clock} clock
 */
function retryAfter(headers, clock) {
  const value = headers.get('retry-after')
  if (!value) return
  const date = headers.get('date')
  const ms = /^\d+$/.test(value) ? +value * 1000 : Date.parse(value) - (date ? Date.parse(date) : clock.now())
  return ms >= 0 ? Math.min(ms, 864e5) : undefined
}
