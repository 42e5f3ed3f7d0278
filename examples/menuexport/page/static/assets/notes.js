/**
 * Small things that this browser keeps, by account: the text of the menu, and what this page
 * itself saw of a task. None of it decides anything: tasks and their identities are kept by
 * the browser package, in its own store.
 *
 * @module
 */

const MOST = 60

/**
 * @param {Storage} storage @param {string} name
 * @returns {any}
 */
function get(storage, name) {
  try {
    return JSON.parse(storage.getItem(name) ?? 'null')
  } catch {
    return null
  }
}

/** @param {Storage} storage @param {string} name @param {any} value */
function put(storage, name, value) {
  try {
    storage.setItem(name, JSON.stringify(value))
  } catch {
    // Full, or not allowed: then it is not kept.
  }
}

/** Storage may be forbidden, and then already the word throws. @param {'localStorage'|'sessionStorage'} which */
function open(which) {
  try {
    return window[which]
  } catch {
    return /** @type {any} */ ({ getItem: () => null, setItem() {} })
  }
}

/** @typedef {ReturnType<typeof createNotes>} Notes */

/** @param {string} account */
export function createNotes(account) {
  const tab = open('sessionStorage')
  const browser = open('localStorage')
  const formName = `semel-menu ${account}`
  const seenName = `semel-seen ${account}`

  /** By identity, the newest last. A Map, since `constructor` and `__proto__` are identities too. @returns {Map<string, [string, number][]>} */
  const all = () => {
    const kept = get(browser, seenName)
    return new Map(Array.isArray(kept) ? kept : [])
  }

  return {
    /** The form as it was left in this tab, else in this browser. */
    form: () => get(tab, formName) ?? get(browser, formName),

    /** @param {any} form */
    keepForm(form) {
      put(tab, formName, form)
      put(browser, formName, form)
    },

    /** What this browser saw of a task: `[what, when]`, oldest first. @param {string} id @returns {[string, number][]} */
    seen: id => all().get(id) ?? [],

    /** @param {string} id @param {string} what @param {number} when */
    see(id, what, when) {
      const notes = all()
      const list = notes.get(id) ?? []
      if (list.at(-1)?.[0] == what) return
      notes.delete(id) // so that it becomes the newest
      notes.set(id, [...list, /** @type {[string, number]} */ ([what, when])].slice(-12))
      put(browser, seenName, [...notes].slice(-MOST))
    },
  }
}
