/**
 * The page's own look-ups. None of them rejects: what is not there, or gives no answer, is
 * undefined.
 *
 * @module
 */

export const KIND = 'menu-export'

/** How to ask; see session.js. @type {typeof fetch} */
let request = (url, init) => fetch(url, init)
/** @param {typeof fetch} use */
export const askBy = use => request = use

/** Called when the server says that nobody is signed in. @type {() => void} */
let signedOut = () => {}
/** @param {() => void} then */
export const onSignedOut = then => signedOut = then

/** How far this device's clock is behind the server's; 0 where no answer contradicts that. */
let behind = 0
/** The time, by the server's clock: what is told here is beside what the server has recorded. */
export const now = () => Date.now() + behind

/**
 * An answer's Date has whole seconds, and was written between question and answer.
 *
 * @param {number} date @param {number} asked @param {number} answered
 */
function compare(date, asked, answered) {
  const [least, most] = [date - answered, date + 1000 - asked]
  if (date) behind = least <= 0 && most >= 0 ? 0 : (least + most) / 2
}

/**
 * @param {string} path @param {RequestInit} [init]
 * @returns {Promise<any>}
 */
export async function ask(path, init) {
  try {
    const asked = Date.now()
    const response = await request(path, { cache: 'no-store', credentials: 'same-origin', ...init })
    compare(Date.parse(response.headers.get('date') ?? ''), asked, Date.now())
    if (response.status == 401) signedOut()
    return response.ok ? await response.json() : undefined
  } catch {
    return undefined
  }
}

/** @param {string} id */
export const operation = id => ask(`/v1/operations/${KIND}/${id}`)
/** @param {string} id */
export const history = id => ask(`/v1/operations/${KIND}/${id}/history`)
export const counts = () => ask('/demo/counts')
export const causes = () => ask('/demo/causes')
/** @param {Record<string, boolean>} change */
export const setCauses = change => ask('/demo/causes', {
  method: 'PUT', body: JSON.stringify(change), headers: { 'content-type': 'application/json' },
})
