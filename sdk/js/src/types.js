/**
 * The nouns of this package. There is no code here.
 *
 * The words are those of the server: an *operation* is one user intent, its
 * *operation ID* is made before the first send, an *attempt* is one transmission.
 * *Unconfirmed* is the browser's own word: "no answer from the server yet".
 *
 * @module
 */

/**
 * Where an operation stands, as far as this browser knows.
 *
 * - `sending`: stored here; provably nothing is recorded at the server yet.
 * - `unconfirmed`: it was sent and no answer came. It may have been recorded. It is being looked up.
 * - `accepted`, `processing`: the server has it.
 * - `needs_reconciliation`: nobody knows whether the effect happened; people are finding out.
 * - `done`, `failed`, `abandoned`: settled by the server.
 * - `rejected`: settled here; refused on every transmission, nothing is recorded.
 * - `expired`: older than what the server remembers; nobody can say any more.
 * - `conflict`: this identity is known at the server with a different request.
 *
 * @typedef {'sending'|'unconfirmed'|'accepted'|'processing'|'needs_reconciliation'
 *   |'done'|'failed'|'abandoned'|'rejected'|'expired'|'conflict'} Phase
 */

/**
 * The operation as the server tells it. Parameters are left out: the draft has them.
 *
 * @typedef {object} Operation
 * @property {{account: string, kind: string, id: string}} key
 * @property {'accepted'|'processing'|'succeeded'|'failed'|'needs_reconciliation'|'abandoned'} state
 * @property {string} [fingerprint]
 * @property {any} [params]
 * @property {any} [result] set when the state is `succeeded`
 * @property {{code: string, message?: string}} [error] why it failed, or the reason of the last try
 * @property {number} [attempts]
 * @property {number} [executions]
 * @property {Progress} [progress]
 * @property {boolean} [acknowledged] nobody can ever know: it stays `needs_reconciliation`
 * @property {boolean} [contradicted] a late result says otherwise than what is recorded
 * @property {number} revision rises by one with every change
 * @property {string} [created_at]
 * @property {string} [updated_at]
 * @property {string} [expires_at] absent while unsettled
 */

/** @typedef {{fraction: number, note?: string}} Progress `fraction` is from 0 to 1. */

/**
 * Why something did not go well: RFC 9457 problem details from the server, or one of our own.
 *
 * Codes of our own: `no-answer` (timeout, lost connection), `unclear-answer` (an answer that
 * Semel did not write), `other-account` (the credential belongs to somebody else),
 * `storage-unavailable` (this browser does not let us write; nothing is sent meanwhile).
 *
 * @typedef {object} Problem
 * @property {string} code stable; decide by this
 * @property {number} [status] the HTTP status; 0 when there was no answer
 * @property {string} [title]
 * @property {string} [detail]
 * @property {string} [hint] what to do about it
 * @property {boolean} [retryable] may the same identity be sent again?
 * @property {'yes'|'no'|'unknown'} [recorded]
 * @property {number} [retention_seconds] with `operation-expired`
 * @property {string[]} [differing_fields] with `fingerprint-mismatch`; JSON Pointers
 * @property {Operation} [operation]
 */

/**
 * An intent, as it is stored in this browser. It is written before the first byte is sent.
 *
 * @typedef {object} Draft
 * @property {string} id the operation ID
 * @property {string} kind
 * @property {string} account
 * @property {string} server
 * @property {string} params the exact JSON text; every transmission carries these bytes. Empty
 *   once the operation is settled and no longer the newest of its kind
 * @property {number} createdAt milliseconds since 1970, by this device's clock
 * @property {number} pressedAt the last time somebody asked for it; the newest is the current one
 * @property {string} [after] "again after this operation": the ID of the one before
 * @property {string} [acceptUntil] RFC 3339
 * @property {number} attempts transmissions begun; a lower bound
 * @property {number} [firstSentAt]
 * @property {number} [lastSentAt]
 * @property {boolean} [open] a transmission has begun and its answer is not stored
 * @property {boolean} [unknown] some transmission may have been recorded
 * @property {boolean} [absent] the last look-up said "not found", so the same ID may go out again
 * @property {Phase} phase
 * @property {number} since when this phase began
 * @property {Operation} [operation] the last known
 * @property {Problem} [problem] the last one, until the next good answer
 * @property {string|null} [etag]
 * @property {boolean} [abandon] asked to make sure that it never happens
 * @property {'sign-in'} [needs]
 * @property {{tab: string, until: number}} [lease] which tab works on it
 * @property {number} n rises with every change
 */

/**
 * What a page shows. A new object for every change.
 *
 * @typedef {object} View
 * @property {string} id
 * @property {string} kind
 * @property {Phase} phase
 * @property {boolean} settled nothing will change any more
 * @property {number} since when this phase began (milliseconds since 1970)
 * @property {number} attempts transmissions begun from this browser
 * @property {'yes'|'no'|'unknown'} recorded has the server recorded it?
 * @property {Operation} [operation] the last answer
 * @property {any} [result] of a `done` operation
 * @property {{code: string, message?: string}} [error] of a `failed` operation
 * @property {Problem} [problem] what is in the way just now, or why it ended
 * @property {Progress} [progress]
 * @property {number} [nextCheckAt] when it will be asked for again (milliseconds since 1970)
 * @property {number} [nextCheckIn] the same, in milliseconds from the moment of this view
 * @property {'asking'|'live'|'waiting'|'offline'} connection `live`: events are coming in
 * @property {'sign-in'} [needs] it goes on after `setToken`, `resume` or the next visit of the page
 * @property {boolean} abandoning "make sure that it never happens" is under way
 * @property {boolean} durable false: this browser keeps nothing, so a reload would lose it
 */

/**
 * What only the working tab knows: goes to the other tabs with every view.
 *
 * @typedef {object} Live
 * @property {View['connection']} connection
 * @property {number} [nextCheckAt]
 */

/**
 * One answer, or the lack of one.
 *
 * @typedef {object} Answer
 * @property {number} status 0: there was none
 * @property {any} [body] of a good one
 * @property {Problem} [problem]
 * @property {number} [retryAfter] milliseconds
 * @property {string|null} [etag]
 */

/**
 * The drafts of one scope while they are locked: nobody else reads or writes between the
 * first and the last call.
 *
 * @typedef {object} Box
 * @property {() => Draft[]} all
 * @property {(id: string) => Draft|undefined} get
 * @property {(draft: Draft) => void} put
 * @property {(id: string) => void} remove
 */

/**
 * Where drafts are kept. One method holds every rule together: `update` is atomic against
 * every other tab, and its changes are durable when the promise resolves. When it rejects,
 * nothing was changed.
 *
 * @typedef {object} Store
 * @property {'indexeddb'|'localstorage'|'memory'} name
 * @property {boolean} durable survives a reload, and other tabs see it
 * @property {<T>(scope: string, change: (box: Box) => T) => Promise<T>} update `change` must not wait
 * @property {() => void} close it opens again by itself
 */

/**
 * Time and chance. Tests pass their own. `setTimeout` may be the browser's: a wait for a signal
 * alone comes as 2**31-1 ms, the longest that it knows.
 *
 * @typedef {object} Clock
 * @property {() => number} now milliseconds since 1970
 * @property {(run: () => void, ms: number, label: string) => any} setTimeout
 * @property {(timer: any) => void} clearTimeout
 * @property {() => number} random from 0 to below 1
 */

/**
 * The parts of the browser in use. Tests pass their own; each may be missing.
 *
 * @typedef {object} Env
 * @property {IDBFactory} [indexedDB]
 * @property {Storage} [localStorage]
 * @property {LockManager} [locks]
 * @property {typeof BroadcastChannel} [BroadcastChannel]
 * @property {() => boolean} [offline]
 * @property {() => boolean} [hidden]
 * @property {EventTarget} [window]
 */

/**
 * All in milliseconds.
 *
 * @typedef {object} Timeouts
 * @property {number} [answer] for one request, from the first byte to the last. Defaults to 20 000
 * @property {number} [silence] an event stream that is quiet for so long is left, and
 *   looked past; longer than the server's heartbeat of 15 000. Defaults to 20 000
 * @property {number} [backoff] the first bound of the random wait after a failure; doubles. Defaults to 500
 * @property {number} [cap] the last bound of that wait. Defaults to 30 000
 * @property {number} [poll] the bound of the wait between look-ups where there are no events, and
 *   of the wait for the first byte of an event stream. Defaults to 5 000
 * @property {number} [lease] a working tab that gives no sign of life for so long is replaced. Defaults to 15 000
 * @property {number} [sync] how often a waiting tab reads the storage. Defaults to 5 000, or 1 000
 *   without BroadcastChannel
 */

/**
 * @typedef {object} ClientOptions
 * @property {string} account whose drafts these are. Never guessed: the page must know it
 * @property {string} [server] base URL. Defaults to the page's own origin
 * @property {string|(() => string|Promise<string>)} [token] bearer token; never stored. Without
 *   one, the browser's cookies count
 * @property {RequestCredentials} [credentials] Defaults to "same-origin"
 * @property {typeof fetch} [fetch] Defaults to the browser's
 * @property {Store} [storage] Defaults to IndexedDB, else localStorage, else memory
 * @property {Timeouts} [timeouts]
 * @property {number} [keep] how many settled drafts stay in this browser. Defaults to 20
 * @property {number} [streams] event streams at once in this tab; further operations are
 *   looked up. All tabs of an origin together have at most 3. Defaults to 2; without Web Locks
 *   to 1, and then only a tab that is looked at has any
 * @property {Clock} [clock] Defaults to the system's
 * @property {Env} [env] Defaults to the browser's
 */

/**
 * @typedef {object} SubmitOptions
 * @property {boolean|string|{id: string}} [again] ask for a new operation although this content was
 *   asked for before. An operation or its ID: "again after that one", made once however often
 *   it is pressed. `true`: after the current one, once that is settled. Defaults to false
 * @property {Date|string} [acceptUntil] a server that has not recorded it by then refuses it
 * @property {number} [acceptWithin] the same, in milliseconds from now, by the server's clock
 *   as far as it is known
 */

export {}
