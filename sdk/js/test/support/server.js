/**
 * A Semel server for tests: the HTTP interface over a Map, on a real socket, with faults that
 * a real network has. It is strict: what the interface does not allow, it answers with 400.
 */

import { createServer } from 'node:http'

const CODES = {
  'invalid-operation': [400, false, 'no'],
  unauthenticated: [401, true, 'no'],
  'unknown-kind': [404, false, 'no'],
  'operation-not-found': [404, true, 'no'],
  'fingerprint-mismatch': [409, false, 'no'],
  'operation-abandoned': [409, false, 'no'],
  'already-started': [409, false, 'yes'],
  'in-progress': [409, true, 'unknown'],
  'operation-expired': [410, false, 'unknown'],
  'accept-deadline-passed': [412, false, 'no'],
  'too-large': [413, false, 'no'],
  'too-many-requests': [429, true, 'no'],
  'store-unavailable': [503, true, 'unknown'],
}

const SETTLED = ['succeeded', 'failed', 'abandoned']
const RETENTION = 30 * 86400

export class FakeServer {
  /** token → account */
  tokens = new Map([['token-acme', 'acme'], ['token-globex', 'globex']])
  kinds = new Set(['menu-export', 'note'])
  /** "account kind id" → operation */
  operations = new Map()
  /** every request that came in, in order */
  requests = []
  /** PUTs of one operation that were on the wire at the same time, at most */
  overlap = 0
  /**
   * whether events are sent: "on", "buffered" (they stop after the first bytes),
   * "mute" (not a byte comes through), "off" (404)
   */
  events = 'on'
  /** event streams that were open at the same time, at most */
  most = 0
  /** how many operations were really made */
  created = 0
  /** answers everything outside /v1: path → {status, type, body, headers} */
  site = () => ({ status: 404 })
  /** now, by the server's clock */
  now = () => Date.now()
  #faults = []
  #streams = new Set()
  #sockets = new Set()
  #waiting = new Set()
  #busy = new Map()
  #server
  #port = 0

  async start() {
    this.#server = createServer((request, response) => {
      this.#handle(request, response).catch(error => response.destroy(error))
    })
    this.#server.keepAliveTimeout = 0
    this.#server.on('connection', socket => {
      // One that was on its way in when the server stopped.
      if (!this.#server.listening) return socket.destroy()
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
    })
    await new Promise(resolve => this.#server.listen(this.#port, '127.0.0.1', resolve))
    this.#port = this.#server.address().port
    this.url = `http://127.0.0.1:${this.#port}`
    return this
  }

  /** Drops every connection and stops listening; `start` comes back on the same port. */
  async stop() {
    const closed = new Promise(resolve => this.#server.close(resolve))
    for (const socket of this.#sockets) socket.destroy()
    this.#streams.clear()
    await closed
  }

  /**
   * The next request of this method (and path) fails:
   * - 'refuse': the connection is dropped before anything happened
   * - 'cut': it is done, then the connection is dropped
   * - 'half': it is done, and the connection is dropped in the middle of the answer
   * - {status, body?, type?, headers?}: answered so, nothing happened
   * - {after: {status…}}: it is done, then answered so
   * - {hold: promise}: it is done, and answered once the promise resolves
   * - {wait: promise}: nothing happens until the promise resolves
   */
  fault(method, what, path = /./) {
    this.#faults.push({ method, what, path })
  }

  /** Resolves when the n-th request of a method (and path) has come in. */
  saw(method, n = 1, path = /./) {
    const enough = () => this.count(method, path) >= n
    if (enough()) return Promise.resolve()
    return new Promise(resolve => this.#waiting.add({ enough, resolve }))
  }

  count(method, path = /./) {
    return this.requests.filter(r => r.method == method && path.test(r.path)).length
  }

  find(id) {
    return [...this.operations.values()].find(o => o.key.id == id)
  }

  /** Moves an operation on and tells every stream. */
  set(id, change, revise = true) {
    const operation = this.find(id)
    Object.assign(operation, change, { updated_at: new Date(this.now()).toISOString() })
    if (revise) operation.revision++
    if (SETTLED.includes(operation.state)) {
      operation.expires_at = new Date(this.now() + RETENTION * 1000).toISOString()
    }
    for (const stream of this.#streams) if (stream.id == id) this.#push(stream, revise)
    return operation
  }

  /** Ends every event stream, as a restarting server or an impatient proxy does. */
  cutStreams() {
    for (const stream of this.#streams) stream.response.destroy()
    this.#streams.clear()
  }

  get streams() {
    return this.#streams.size
  }

  #push(stream, revised = true) {
    const operation = this.find(stream.id)
    if (this.events == 'buffered' || this.events == 'mute') return
    // Progress is no change: it has no ID, and comes without parameters and result.
    const { params, result, ...short } = operation
    const head = revised ? `event: state\nid: ${operation.revision}` : 'event: progress'
    stream.response.write(`${head}\ndata: ${JSON.stringify(revised ? operation : short)}\n\n`)
    if (SETTLED.includes(operation.state)) {
      this.#streams.delete(stream)
      stream.response.end()
    }
  }

  async #handle(request, response) {
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks).toString()
    const url = new URL(request.url, this.url)
    if (!url.pathname.startsWith('/v1/')) return this.#raw(response, this.site(url.pathname))
    const seen = { method: request.method, path: url.pathname + url.search, headers: request.headers, body }
    this.requests.push(seen)
    for (const waiter of this.#waiting) {
      if (waiter.enough()) {
        this.#waiting.delete(waiter)
        waiter.resolve()
      }
    }
    if (request.method == 'PUT') {
      const busy = (this.#busy.get(seen.path) ?? 0) + 1
      this.#busy.set(seen.path, busy)
      this.overlap = Math.max(this.overlap, busy)
      response.on('close', () => this.#busy.set(seen.path, this.#busy.get(seen.path) - 1))
    }
    const i = this.#faults.findIndex(f => f.method == seen.method && f.path.test(seen.path))
    const { what } = i < 0 ? {} : this.#faults.splice(i, 1)[0]
    if (what == 'refuse') return request.socket.destroy()
    if (what?.wait) await what.wait
    if (what?.status) return this.#raw(response, what)
    if (url.pathname.endsWith('/events')) return this.#listen(request, url, response)
    const answer = this.#answer(seen, url, request.headers)
    if (what == 'cut') return request.socket.destroy()
    if (what == 'half') {
      response.writeHead(answer.status, { 'content-type': 'application/json', 'content-length': 4000 })
      return response.write(JSON.stringify(answer.body).slice(0, 50), () => request.socket.destroy())
    }
    if (what?.hold) await what.hold
    this.#raw(response, what?.after ?? answer)
  }

  #raw(response, { status, body, type = 'application/json', headers = {} }) {
    response.writeHead(status, {
      ...body === undefined ? {} : { 'content-type': type },
      date: new Date(this.now()).toUTCString(),
      ...headers,
    })
    response.end(typeof body == 'object' ? JSON.stringify(body) : body)
  }

  problem(code, more = {}) {
    const [status, retryable, recorded] = CODES[code]
    return {
      status,
      type: 'application/problem+json',
      headers: code == 'too-many-requests' ? { 'retry-after': '7' } : {},
      body: { type: `https://semel.dev/problems/${code}`, title: code, status, code, retryable, recorded, ...more },
    }
  }

  #account(headers) {
    return this.tokens.get(/^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1])
  }

  #listen(request, url, response) {
    const [, , , kind, id] = url.pathname.split('/')
    const operation = this.operations.get(`${this.#account(request.headers)} ${kind} ${id}`)
    if (!operation || this.events == 'off') return this.#raw(response, this.problem('operation-not-found'))
    const seen = +(request.headers['last-event-id'] ?? -1)
    if (seen == operation.revision && SETTLED.includes(operation.state)) return this.#raw(response, { status: 204 })
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
    response.flushHeaders()
    const stream = { id, response }
    if (this.events != 'mute') response.write('retry: 1000\n\n')
    this.#streams.add(stream)
    this.most = Math.max(this.most, this.streams)
    response.on('close', () => this.#streams.delete(stream))
    if (seen < operation.revision) this.#push(stream)
  }

  #answer(seen, url, headers) {
    const account = this.#account(headers)
    if (!account) return this.problem('unauthenticated')
    const [, , , kind, id] = url.pathname.split('/')
    if (!kind) return this.#list(account, url.searchParams)
    if (!this.kinds.has(kind)) return this.problem('unknown-kind')
    if (!/^[A-Za-z0-9._~-]{1,128}$/.test(id)) return this.problem('invalid-operation')
    const key = `${account} ${kind} ${id}`
    const operation = this.operations.get(key)
    if (operation?.expired) return this.problem('operation-expired', { retention_seconds: RETENTION })
    switch (seen.method) {
      case 'GET':
        if (!operation) return this.problem('operation-not-found')
        if (headers['if-none-match'] == `"${operation.revision}"`) {
          return { status: 304, headers: { etag: headers['if-none-match'] } }
        }
        return this.#found(200, operation)
      case 'PUT':
        return this.#put(key, operation, seen, headers)
      case 'DELETE':
        if (!operation || operation.state == 'accepted') {
          if (!operation) this.#make(key, '')
          return this.#found(200, this.set(id, { state: 'abandoned' }))
        }
        if (operation.state == 'abandoned') return this.#found(200, operation)
        return this.problem('already-started', { operation })
    }
    return this.problem('invalid-operation')
  }

  #put(key, operation, seen, headers) {
    let params
    try {
      params = JSON.parse(seen.body)
    } catch {
      return this.problem('invalid-operation')
    }
    if (!headers['attempt-id'] || headers['content-type'] != 'application/json') return this.problem('invalid-operation')
    if (operation) {
      if (operation.state == 'abandoned') return this.problem('operation-abandoned', { operation })
      if (operation.sent != seen.body) return this.problem('fingerprint-mismatch', { differing_fields: ['/title'] })
      operation.attempts++
      return this.#found(200, operation, { 'idempotency-replayed': 'true' })
    }
    if (params?.title === '') return this.problem('invalid-operation', { detail: 'title is empty' })
    if (Date.parse(headers['accept-until']) < this.now()) return this.problem('accept-deadline-passed')
    const [, , id] = key.split(' ')
    const time = parseInt(id.replace('-', '').slice(0, 12), 16)
    if (time < this.now() - RETENTION * 1000) return this.problem('operation-expired', { retention_seconds: RETENTION })
    this.created++
    return this.#found(201, this.#make(key, seen.body))
  }

  #make(key, sent) {
    const [account, kind, id] = key.split(' ')
    const at = new Date(this.now()).toISOString()
    const operation = {
      key: { account, kind, id }, state: 'accepted', fingerprint: 'v1:sha256:00', params: sent ? JSON.parse(sent) : undefined,
      attempts: 1, executions: 0, revision: 1, created_at: at, updated_at: at,
    }
    Object.defineProperty(operation, 'sent', { value: sent })
    this.operations.set(key, operation)
    return operation
  }

  #found(status, operation, headers = {}) {
    return {
      status,
      body: { ...operation },
      headers: {
        etag: `"${operation.revision}"`,
        location: `/v1/operations/${operation.key.kind}/${operation.key.id}`,
        ...SETTLED.includes(operation.state) ? {} : { 'retry-after': '1' },
        ...headers,
      },
    }
  }

  #list(account, query) {
    const size = +(query.get('page_size') ?? 50)
    const from = +(query.get('page_token') ?? 0)
    const all = [...this.operations.values()].reverse().filter(o => o.key.account == account &&
      (!query.get('kind') || o.key.kind == query.get('kind')) && (!query.get('state') || o.state == query.get('state')))
    const operations = all.slice(from, from + size).map(({ params, result, ...rest }) => rest)
    const more = from + size < all.length
    return { status: 200, body: { operations, ...more ? { next_page_token: `${from + size}` } : {} } }
  }
}

/** Starts a server that stops with the test. */
export async function fakeServer(t) {
  const server = await new FakeServer().start()
  t.after(() => server.stop())
  return server
}
