/**
 * Puts the page together: who is signed in, the menu, the task, the counts, the switches.
 *
 * Reading the source: `work.js` is the tasks over the browser package, `menu.js` what may be
 * sent, `trail.js` what happened, `session.js` who is signed in; the rest shows them.
 *
 * @module
 */

import { SemelError } from '/sdk/index.js'
import { createCauses } from './causes.js'
import { createCounts } from './counts.js'
import { at, write } from './dom.js'
import { createEditor } from './editor.js'
import { working } from './head.js'
import { lang, list, onLanguage, t } from './lang.js'
import { example, formOf, isMenu, read, same } from './menu.js'
import { createNotes } from './notes.js'
import { createPulse } from './pulse.js'
import * as server from './server.js'
import { account, mayCause, signIn, work as workAs } from './session.js'
import { createShelf } from './shelf.js'
import { createTask } from './task.js'
import { createTimeline } from './timeline.js'
import { trail } from './trail.js'
import { createWork, dated } from './work.js'

if (working) start().catch(trouble)
else showSignIn()

/** @param {any} error */
function trouble(error) {
  at('trouble').hidden = false
  write(at('trouble'), t('trouble', { why: error?.message ?? error }))
  document.body.classList.add('ready')
}

function showSignIn() {
  const form = at('sign-in-form')
  const token = at('token')
  const problem = at('token-problem')
  let word = /** @type {any} */ (undefined)
  const draw = () => {
    at('sign-in-now').hidden = !account
    write(at('sign-in-now'), t('signedInNow', { account }))
    write(problem, word ? t(word) : '')
  }
  at('sign-in-back').hidden = !account
  document.querySelector('.skip')?.setAttribute('hidden', '')
  onLanguage(draw)
  draw()
  document.body.classList.add('ready')
  token.focus()
  form.addEventListener('submit', async (/** @type {Event} */ event) => {
    event.preventDefault()
    const text = token.value.trim()
    const status = text ? await signIn(text) : -1
    if (status == 200) return location.replace('/')
    word = status == -1 ? 'tokenMissing' : status == 401 || status == 400 ? 'tokenWrong' : 'signInFailed'
    token.setAttribute('aria-invalid', 'true')
    draw()
    token.focus()
  })
}

async function start() {
  const notes = createNotes(account)
  const session = workAs(async () => {
    at('trouble').hidden = false
    write(at('trouble'), t('elsewhere'))
    await work.client.close()
  })
  server.askBy(session.fetch)
  server.onSignedOut(() => location.href = '/')
  const work = createWork(account, session.fetch, notes)
  const editor = createEditor(at('menu-form'), { change, send })
  const task = createTask(at('task-body'), mayCause, act)
  const timeline = createTimeline(at('trail-body'))
  const counts = createCounts(at('counts-body'))
  const causes = createCauses(at('causes-body'), mayCause, async change => {
    const after = await server.setCauses(change)
    if (after) facts.causes = after
    return after
  })
  const shelf = createShelf(at('shelf-body'), { pick, need: id => work.detail(id), more: work.further })

  /** What the timeline and the counts are made of; `at` is when the history was told. */
  const facts = { counts: /** @type {any} */ (undefined), stale: false, at: 0, causes: /** @type {any} */ (undefined), history: /** @type {any} */ (undefined), of: '', revision: -1, contract: '' }
  /** Something happened just now: the counts may be behind. */
  let lively = 0
  let remembered = true
  /** The count of operations that the list was last looked up for. */
  let listedFor = -1

  const pulse = createPulse(look, () => {
    const open = work.tasks().some(({ view }) => !view.settled)
    return !facts.stale && (open || Date.now() < lively) ? 700 : 4000
  })
  let due = false
  work.on((/** @type {boolean} */ moved) => {
    if (!moved) {
      // Many look-ups may be answered at once; one drawing tells of all.
      if (!due) setTimeout(draw, 16)
      due = true
      return
    }
    draw()
    lively = Date.now() + 3000
    pulse.beat()
  })
  onLanguage(() => {
    if (untouched()) editor.fill(example(t('exampleTitle'), list('example')))
    else editor.draw()
    causes.redraw()
    task.redraw()
    draw()
  })

  causes.redraw()
  editor.fill(notes.form() ?? example(t('exampleTitle'), list('example')))
  remembered = await work.resume()
  const menu = work.shown?.menu
  if (!notes.form() && isMenu(menu)) editor.fill(formOf(menu))
  draw()
  document.body.classList.add('ready')
  pulse.beat()

  /** Is the form still the example, in any language, and nothing asked for? */
  function untouched() {
    return !notes.form() && !work.shown
  }

  /** Asks for all that is not told by itself. */
  async function look() {
    const [counted, caused] = await Promise.all([server.counts(), server.causes()])
    facts.stale = !counted
    facts.counts = counted ?? facts.counts
    facts.causes = caused ?? facts.causes
    causes.draw(caused)
    const open = work.tasks().some(({ view, handle }) => !view.settled && !handle)
    if (open || counted && counted.operations != listedFor) {
      await work.refresh()
      listedFor = counted?.operations ?? listedFor
    }
    await lookBack()
    draw()
  }

  /** The history of the task that is shown, where it may have changed. */
  async function lookBack() {
    const shown = work.shown
    const op = shown?.view.operation
    if (!op) return
    if (facts.of == op.key.id && facts.revision == op.revision && shown.view.settled && Date.now() > lively) return
    const history = await server.history(op.key.id)
    if (history) Object.assign(facts, { history, of: op.key.id, revision: op.revision, at: server.now() })
  }

  function draw() {
    due = false
    const shown = work.shown
    const tasks = work.tasks()
    task.draw(shown, shown && !remembered && !shown.handle ? t('fromServer') : '')
    task.offerMenu(!!shown?.menu && same(shown.menu) != same(read(editor.value()).menu))
    shelf.draw(tasks, shown?.id, work.more)
    const history = facts.of == shown?.id ? facts.history : undefined
    facts.contract = nameOf(history) || facts.contract
    timeline.draw(shown ? trail({ operation: shown.view.operation, history, causes: facts.causes, seen: notes.seen(shown.id),
      sent: shown.view.attempts > 0 ? dated(shown.id) : undefined, now: facts.at }) : [], facts.contract, !shown || !shown.view.settled)
    const phases = /** @type {Record<string, number>} */ ({})
    for (const { view } of tasks) phases[view.phase] = (phases[view.phase] ?? 0) + 1
    counts.draw({ seen: tasks.length, more: work.more, server: facts.counts, stale: facts.stale, phases })
  }

  /** @param {import('./menu.js').Form} form */
  function change(form) {
    notes.keepForm(form)
    draw()
  }

  /** @param {import('./menu.js').Menu} menu */
  async function send(menu) {
    try {
      const made = await work.ask(menu)
      editor.say(made == 'new' ? '' : t(work.shown?.view.settled ? 'same' : 'sameOpen'))
      reveal()
    } catch (error) {
      editor.say(error instanceof SemelError && error.code == 'not-stored' ? t('notStored') : `${error}`)
    }
  }

  /** @param {import('./task.js').Action|'use'} action @param {import('./work.js').Task} which */
  function act(action, which) {
    if (action == 'check') which.handle?.check()
    if (action == 'abandon') which.handle?.abandon().catch(() => {})
    if (action == 'sign-in') location.href = '/'
    if (action == 'use' && which.menu) {
      editor.fill(formOf(which.menu))
      change(editor.value())
      at('f-title').focus()
    }
    if (action == 'again') {
      work.again(which).catch(error => editor.say(`${error}`))
      task.focus()
    }
  }

  /** @param {string} id */
  function pick(id) {
    work.show(id)
    reveal()
    task.focus()
  }

  /** Where the task is out of sight, as on a phone, it is scrolled to. */
  function reveal() {
    const box = at('task').getBoundingClientRect()
    if (box.top >= 0 && box.top < innerHeight * 0.6) return
    const calm = matchMedia('(prefers-reduced-motion: reduce)').matches
    at('task').scrollIntoView({ behavior: calm ? 'auto' : 'smooth', block: 'start' })
  }
}

/** The contract that the newest execution went by. @param {any} history @returns {string} */
function nameOf(history) {
  const text = history?.executions?.findLast((/** @type {any} */ x) => x.contract)?.contract
  try {
    return text ? JSON.parse(text).name : ''
  } catch {
    return ''
  }
}
