import { api, pathOf } from './api.js'
import { fill, h } from './dom.js'
import { find, isID } from './find.js'
import { number, t, when } from './i18n.js'
import { insist } from './poll.js'

const STATES = ['', 'accepted', 'processing', 'succeeded', 'failed', 'needs_reconciliation', 'abandoned']
const PAGE = '100'

/** @param {string} state */
export const badge = state => h('span', { class: `badge ${state}` }, t(state))

/** @param {HTMLElement} main @param {import('./app.js').Context} context */
export async function list(main, context) {
  const { rest, signal, say, fail, who } = context
  const filters = new URLSearchParams(rest[0] || '')
  const rows = h('tbody', { role: 'rowgroup' })
  const foot = h('p', { class: 'foot' })
  const field = (/** @type {string} */ name, /** @type {any} */ control) => h('div', { class: 'field' }, h('label', { for: `filter-${name}` }, t(name)), control)
  const text = (/** @type {string} */ name) => h('input', { id: `filter-${name}`, name, value: filters.get(name) || '', autocomplete: 'off', spellcheck: 'false' })
  const state = h('select', { id: 'filter-state', name: 'state' },
    STATES.map(s => h('option', { value: s, selected: s === (filters.get('state') || '') }, s ? t(s) : t('any'))))
  const typed = filters.get('search') || ''
  const search = text('search')
  search.placeholder = t('searchHelp')
  const apply = (/** @type {Event} */ e) => {
    e.preventDefault()
    const key = search.value.trim().split('/')
    if (key.length === 3 && key.every(Boolean)) return go(`#/operation/${key.map(encodeURIComponent).join('/')}`)
    const query = new URLSearchParams([...new FormData(form)].map(([k, v]) => [k, String(v).trim()]).filter(([, v]) => v !== ''))
    go(`#/operations/${encodeURIComponent(query.toString())}`)
  }
  const form = h('form', { class: 'filters', submit: apply }, field('account', text('account')), field('kind', text('kind')), field('state', state),
    field('search', search), h('button', { class: 'main' }, t('find')))
  const table = h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': t('operations') }, h('table', { role: 'table' },
      h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' }, ['state', 'account', 'kind', 'id', 'created', 'executions', 'reason'].map(c => h('th', { scope: 'col', role: 'columnheader', class: c === 'executions' && 'num' }, t(c))))), rows))
  fill(main,
    h('h1', {}, t('operations')),
    form,
    table,
    foot)

  const load = async (/** @type {string} */ token) => {
    const page = await api.list({ page_size: PAGE, account: filters.get('account') || '', kind: filters.get('kind') || '', state: filters.get('state') || '', page_token: token })
    if (signal.aborted) return
    rows.append(...page.operations.map(row))
    const next = page.next_page_token
    fill(foot, rows.childElementCount === 0 ? t('nothing') : next
      ? h('button', { id: 'more', click: more(next) }, t('more'))
      : t('end'))
    say(number(rows.childElementCount))
  }
  const more = (/** @type {string} */ token) => async (/** @type {Event} */ e) => {
    const button = /** @type {HTMLButtonElement} */ (e.currentTarget)
    const next = rows.childElementCount
    button.disabled = true
    await insist(() => load(token), context).catch(fail)
    rows.children[next]?.querySelector('a')?.focus()
  }
  /** Says why nothing was found, beside what was typed. @param {...any} why */
  const miss = (...why) => {
    fill(foot)
    table.hidden = true
    form.after(h('div', { id: 'search-note', role: 'alert' }, ...why))
    search.setAttribute('aria-invalid', 'true')
    search.setAttribute('aria-describedby', 'search-note')
    search.focus()
  }
  const seek = async () => {
    if (!isID(typed)) return miss(h('p', { class: 'wrong' }, t('searchForm')))
    fill(foot, t('searching'))
    const looked = await find(typed, { account: filters.get('account') || '', kind: filters.get('kind') || '' }, who.accounts || [], signal)
    if (signal.aborted) return
    if (looked.found.length === 1) return location.replace(`#/operation/${pathOf(looked.found[0].key)}`)
    if (!looked.found.length) return miss(...whyNot(looked))
    rows.append(...looked.found.map(row))
    fill(foot, t('end'))
    say(number(looked.found.length))
  }
  await (typed ? seek() : load(''))
}

/** Goes to an address, also where one is there already: somebody asks again. @param {string} hash */
function go(hash) {
  if (location.hash === hash) dispatchEvent(new HashChangeEvent('hashchange'))
  else location.hash = hash
}

const NAMED = 12 // places; more are not read

/** What a search for an ID did not find, and where. @param {Awaited<ReturnType<typeof find>>} looked */
function whyNot({ expired, guessed, places, left }) {
  const names = places.slice(0, NAMED).flatMap((place, i) => [i > 0 && ', ', h('bdi', {}, `${place.account}/${place.kind}`)])
  return [
    h('p', { class: 'wrong' }, [t(expired ? 'searchExpired' : 'searchNone'), guessed && t('searchGuessed'), left > 0 && t('searchLeft')].filter(Boolean).join(' ')),
    names.length > 0 && h('p', { class: 'quiet' }, `${t('lookedIn')} `, ...names, places.length > NAMED && ', …'),
  ]
}

/** @param {any} op */
function row(op) {
  const cell = (/** @type {string} */ name, /** @type {...any} */ ...content) => h('td', { role: 'cell', class: name }, ...content)
  return h('tr', { role: 'row' },
    cell('state', badge(op.state), op.contradicted && badge('contradicted')),
    cell('account', op.key.account), cell('kind', op.key.kind),
    cell('key', h('a', { href: `#/operation/${pathOf(op.key)}`, class: 'id' }, h('bdi', {}, op.key.id))),
    cell('nowrap', when(op.created_at)), cell('num', op.executions),
    cell('reason', op.error && h('bdi', {}, op.error.code)))
}
