/**
 * Shows one task: how far it is, what that means, what one may do, and the picture.
 *
 * @module
 */

import { describe, label } from '/sdk/messages.js'
import { h, set, write } from './dom.js'
import { lang, t } from './lang.js'

/** @import {Task} from './work.js' */
/** @import {View} from '/sdk/index.js' */

/** "No confirmation yet" stays readable for so long, however fast the answer is found. */
const READABLE = 1600

/** The look of the three steps, and the word of the last. @type {Record<string, [string, string, string, import('./words.js').Word?]>} */
const STEPS = {
  none: ['todo', 'todo', 'todo'],
  sending: ['now', 'todo', 'todo'],
  unconfirmed: ['doubt', 'todo', 'todo'],
  accepted: ['done', 'todo', 'todo'],
  processing: ['done', 'now', 'todo'],
  done: ['done', 'done', 'done'],
  failed: ['done', 'done', 'bad', 'stepFailed'],
  needs_reconciliation: ['done', 'done', 'doubt', 'stepDoubt'],
  abandoned: ['todo', 'todo', 'still', 'stepStopped'],
  rejected: ['bad', 'todo', 'todo'],
  conflict: ['bad', 'todo', 'todo'],
  expired: ['doubt', 'todo', 'todo'],
}
/** Which of them is the present one. @type {Record<string, number>} */
const PRESENT = { sending: 0, unconfirmed: 0, accepted: 0, processing: 1, done: 2, failed: 2, needs_reconciliation: 2, abandoned: 2, rejected: 0, conflict: 0, expired: 0 }

/** @typedef {'check'|'abandon'|'sign-in'|'again'} Action */
/** @type {Action[]} */
const ACTIONS = ['sign-in', 'abandon', 'check', 'again'] // those that come and go last

/**
 * @param {HTMLElement} body
 * @param {boolean} operator may find out what nobody knows
 * @param {(action: Action|'use', task: Task) => void} act
 */
export function createTask(body, operator, act) {
  const steps = [0, 1, 2].map(() => h('li', {}, h('span', { class: 'mark', 'aria-hidden': 'true' }), h('span', { class: 'word' })))
  const list = h('ol', { class: 'progress' }, ...steps)
  const title = h('p', { class: 'title', id: 'task-state', role: 'status', 'aria-live': 'polite', 'aria-atomic': 'true', tabindex: '-1' })
  const detail = h('p', { class: 'detail', id: 'task-detail' })
  const reason = h('p', { class: 'reason', id: 'task-reason', dir: 'auto' })
  const buttons = ACTIONS.map(action => h('button', { type: 'button', 'data-action': action, hidden: true, onclick: (/** @type {MouseEvent} */ event) => {
    // The second click of a double click is meant for what was there at the first one.
    if (task && event.detail < 2) act(action, task)
  } }))
  const download = h('a', { class: 'button', id: 'download', hidden: true })
  const use = h('button', { type: 'button', id: 'use', hidden: true, onclick: () => task && act('use', task) })
  const find = h('a', { class: 'button', id: 'find', href: '/console/#/queue', hidden: true })
  const says = h('div', { class: 'says' }, title, detail, reason)
  const image = h('img', { id: 'picture', alt: '', hidden: true, decoding: 'async' })
  const blank = h('div', { class: 'blank', 'aria-hidden': 'true' }, ...[1, 2, 3, 4, 5].map(() => h('i')))
  const size = h('figcaption', {})
  const frame = h('div', { class: 'frame' }, blank, image)
  const figure = h('figure', {}, frame, size)
  const identity = h('p', { class: 'identity' })
  body.append(list, h('div', { class: 'stage' }, says, figure), h('div', { class: 'actions' }, download, ...buttons, find, use), identity)
  image.addEventListener('load', () => frame.classList.add('loaded'))
  image.addEventListener('error', () => image.getAttribute('src') && write(size, t('pictureLost')))

  /** @type {Task|undefined} */
  let task
  /** The view on show, which may be a little behind. @type {View|undefined} */
  let shown
  let until = 0
  /** @type {any} */
  let timer
  let note = ''

  /** @param {Task|undefined} next @param {string} [remark] */
  function draw(next, remark = note) {
    const other = next?.id != task?.id
    task = next
    note = remark
    const left = until - Date.now()
    if (!other && left > 0 && shown?.phase == 'unconfirmed' && next?.view.phase != 'unconfirmed') {
      clearTimeout(timer)
      timer = setTimeout(() => draw(task), left)
      render(shown)
      return
    }
    const view = next?.view
    if (view?.phase == 'unconfirmed' && (other || shown?.phase != 'unconfirmed')) until = Date.now() + READABLE
    shown = view
    render(view)
  }

  /** @param {View|undefined} view */
  function render(view) {
    const phase = view?.phase ?? 'none'
    const message = view && describe(view, lang)
    const looks = STEPS[phase] ?? STEPS.processing
    const words = /** @type {const} */ (['stepAccepted', 'stepProcessing', looks[3] ?? 'stepDone'])
    set(list, 'aria-label', t('steps'))
    steps.forEach((step, i) => {
      set(step, 'data-look', looks[i])
      set(step, 'aria-current', PRESENT[phase] == i && 'step')
      write(step.lastElementChild, t(words[i]))
    })
    set(body, 'data-phase', phase)
    set(says, 'data-tone', message?.tone ?? 'calm')
    write(title, message ? message.title : t('noTask'))
    write(detail, [message ? more(view, message.detail) : t('noTaskDetail'), note].filter(Boolean).join(' '))
    write(reason, message?.reason ?? '')
    offer(message?.actions ?? [])
    picture(view)
    find.hidden = !operator || phase != 'needs_reconciliation'
    write(find, t('find'))
    identity.hidden = !view
    if (view) identity.replaceChildren(`${t('identity')} `, h('code', {}, view.id))
  }

  /** What this page adds to the package's words. @param {View} view @param {string} text */
  function more(view, text) {
    if (view.phase == 'done') {
      const n = Math.max(view.attempts, view.operation?.attempts ?? 0)
      return t(n > 1 ? 'doneDetailMany' : 'doneDetail', { n })
    }
    return view.phase == 'needs_reconciliation' ? `${text} ${t('checkingNext')}` : text
  }

  /** @param {Action[]} offered */
  function offer(offered) {
    const active = document.activeElement
    buttons.forEach((button, i) => {
      const action = ACTIONS[i]
      write(button, action == 'again' ? t('again') : label(action, lang))
      // Once more needs to know what, and a doubt is never answered by making another.
      button.hidden = !offered.includes(action) || action == 'again' && !task?.menu || (action == 'check' || action == 'abandon') && !task?.handle
    })
    // A person at the keyboard must not be thrown to the top of the page.
    if (active instanceof HTMLElement && active.hidden && body.contains(active)) title.focus()
  }

  /** @param {View|undefined} view */
  function picture(view) {
    const made = view?.result
    const url = typeof made?.image_url == 'string' && made.image_url.startsWith('/menus/') ? made.image_url : ''
    if (image.getAttribute('src') != (url || null)) {
      frame.classList.remove('loaded')
      if (url) {
        set(image, 'width', made.width)
        set(image, 'height', made.height)
        set(image, 'src', url)
      } else image.removeAttribute('src')
    }
    image.hidden = !url
    set(image, 'alt', url ? alternative(task?.menu) : '')
    write(size, url ? t('size', made) : '')
    download.hidden = !url
    write(download, t('download'))
    if (url) {
      set(download, 'href', url)
      set(download, 'download', `${(task?.menu?.title ?? t('file')).replace(/[\\/:*?"<>|\p{C}]+/gu, ' ').trim().slice(0, 60) || t('file')}.png`)
    } else download.removeAttribute('href')
  }

  return {
    draw,
    redraw: () => draw(task),
    focus: () => title.focus(),
    /** Its menu is another one than that in the form. @param {boolean} other */
    offerMenu(other) {
      write(use, t('useMenu'))
      use.hidden = !other
    },
  }
}

/** The picture in words. @param {import('./menu.js').Menu|undefined} menu */
export function alternative(menu) {
  if (!menu) return t('altPlain')
  const days = menu.days.map(day => t('altDay', { day: day.day, dishes: day.dishes.join(t('listSeparator')) }))
  return t('alt', { title: menu.title, days: days.join(' ') })
}
