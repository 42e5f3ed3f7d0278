// The HTTP interface, as far as operators use it. The cookie goes along by itself.

export class Problem extends Error {
  /** @param {number} status @param {any} body */
  constructor(status, body) {
    super(body.detail || body.title || `HTTP ${status}`)
    this.status = status
    this.code = body.code || ''
    this.hint = body.hint || ''
    this.operation = body.operation
  }
}

/**
 * Keeps the digits of numbers that a float can't hold, where the browser can.
 * @param {string} _ @param {any} value @param {{source?: string}} [context]
 */
function exact(_, value, context) {
  const source = context?.source
  const raw = /** @type {any} */ (JSON).rawJSON
  if (typeof value !== 'number' || !source || !raw || Number.isSafeInteger(value) || String(value) === source) return value
  const digits = source.replace(/e.*/i, '').replace(/\D/g, '').replace(/^0+/, '')
  return digits.length <= 15 && Number.isFinite(value) && value !== 0 ? value : raw(source)
}

/**
 * @param {string} method
 * @param {string} path
 * @param {{body?: any, headers?: Record<string, string>}} [options]
 */
async function call(method, path, { body, headers = {} } = {}) {
  let response, text
  try {
    response = await fetch(path, {
      method,
      headers: { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: 'no-store',
      credentials: 'same-origin',
    })
    text = await response.text() // an answer that is cut is none
  } catch {
    throw new Problem(0, { code: 'no-answer' })
  }
  const isJSON = /json/.test(response.headers.get('Content-Type') || '')
  const value = isJSON && text ? JSON.parse(text, exact) : text
  if (!response.ok) throw new Problem(response.status, isJSON ? value : {})
  return value
}

const part = encodeURIComponent
/** @param {{account: string, kind: string, id: string}} key */
export const pathOf = key => `${part(key.account)}/${part(key.kind)}/${part(key.id)}`

export const api = {
  session: () => call('GET', '/v1/session'),
  signIn: (/** @type {string} */ token) => call('POST', '/v1/session', { headers: { Authorization: `Bearer ${token}` } }),
  signOut: () => call('DELETE', '/v1/session'),
  stats: () => call('GET', '/v1/operator/stats'),
  metrics: () => call('GET', '/metrics'),
  kinds: () => call('GET', '/v1/kinds'),
  kind: (/** @type {string} */ kind) => call('GET', `/v1/kinds/${part(kind)}`),
  list: (/** @type {Record<string, string>} */ filters) => {
    const query = new URLSearchParams(Object.entries(filters).filter(([, value]) => value !== ''))
    return call('GET', `/v1/operator/operations?${query}`)
  },
  get: (/** @type {any} */ key) => call('GET', `/v1/operator/operations/${pathOf(key)}`),
  history: (/** @type {any} */ key) => call('GET', `/v1/operator/operations/${pathOf(key)}/history`),
  resolve: (/** @type {any} */ key, /** @type {number} */ revision, /** @type {any} */ verdict) =>
    call('PUT', `/v1/operator/operations/${pathOf(key)}/resolution`, { body: verdict, headers: { 'If-Match': `"${revision}"` } }),
}
