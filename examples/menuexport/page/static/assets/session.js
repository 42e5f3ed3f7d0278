/**
 * Who is signed in. All tabs of a browser share one cookie, so a tab that works for one account
 * must not send anything once another tab has signed in as somebody else. Every working tab
 * holds a shared lock; signing in needs it exclusively, and asks the others to let go first.
 *
 * @module
 */

const LOCK = 'semel-page'
const channel = 'BroadcastChannel' in window ? new BroadcastChannel(LOCK) : undefined

/** @param {string} name */
const meta = name => document.querySelector(`meta[name="${name}"]`)?.getAttribute('content') ?? ''

/** Who was signed in when this page was served; empty: nobody. */
export const account = meta('semel-account')
/** May this account move the switches? */
export const mayCause = meta('semel-switches') == 'true'
/** Somebody wants to sign in as somebody else. */
export const wantsSignIn = new URLSearchParams(location.search).has('sign-in')

/** @returns {Promise<string|undefined>} empty: nobody; undefined: no answer */
async function whoNow() {
  try {
    const response = await fetch('/v1/session', { cache: 'no-store', credentials: 'same-origin' })
    if (response.ok) return (await response.json()).account ?? ''
    return response.status == 401 ? '' : undefined
  } catch {
    return undefined
  }
}

/**
 * Works under the account until another tab wants to change it.
 *
 * @param {() => Promise<void>} leave ends all work of this page
 */
export function work(leave) {
  let release = () => {}
  let gone = false
  /** Resolves when it is sure that the cookie is still that of the account. @type {Promise<any>} */
  let sure = hold().then(verify)

  /** Takes the lock, until `release`. */
  async function hold() {
    if (!navigator.locks) return
    const mine = new AbortController()
    const released = new Promise(resolve => release = () => {
      mine.abort()
      resolve(undefined)
    })
    await new Promise(resolve => {
      navigator.locks.request(LOCK, { mode: 'shared', signal: mine.signal }, () => {
        resolve(undefined)
        return released
      }).catch(() => {})
    })
  }

  /** Resolves only if nothing has changed since this page was served. */
  async function verify() {
    const now = await whoNow()
    if (now === undefined || now == account) return
    gone = true
    location.reload()
    await new Promise(() => {})
  }

  /** Ends all work here, so that somebody else may sign in. */
  async function out() {
    if (gone) return
    gone = true
    sure = new Promise(() => {})
    await leave()
    release()
  }

  channel?.addEventListener('message', ({ data }) => {
    if (data == 'leave') out()
    else if (data == 'back' && gone) location.reload()
  })
  // A page that keeps a lock or a channel open is not kept for the back button.
  addEventListener('pagehide', () => release())
  addEventListener('pageshow', event => {
    if (event.persisted && !gone) sure = hold().then(verify)
  })

  return {
    /** The browser's fetch, once it is sure who is signed in. @type {typeof fetch} */
    fetch: async (url, init) => {
      await sure
      return fetch(url, init)
    },
  }
}

/**
 * Changes who is signed in, while no tab works.
 *
 * @param {() => Promise<Response>} change
 * @returns {Promise<number>} the status; 0: no answer
 */
async function alone(change) {
  const run = async () => {
    try {
      return (await change()).status
    } catch {
      return 0
    }
  }
  channel?.postMessage('leave')
  try {
    if (!navigator.locks) return await run()
    // A tab that hangs must not keep people out for ever.
    return await navigator.locks.request(LOCK, { signal: AbortSignal.timeout(4000) }, run)
  } catch {
    return await run()
  } finally {
    channel?.postMessage('back')
  }
}

/** @param {string} token */
export const signIn = token => alone(() => fetch('/v1/session', { method: 'POST', headers: { authorization: `Bearer ${token}` } }))

export const signOut = () => alone(() => fetch('/v1/session', { method: 'DELETE' }))
