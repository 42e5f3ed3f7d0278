/**
 * The account's tasks, newest first, with their pictures. Menu and picture of each are looked
 * up when it comes into view.
 *
 * @module
 */

import { day, h, set, write } from './dom.js'
import { lang, t } from './lang.js'

/** @import {Task} from './work.js' */

/** @type {Record<string, [import('./words.js').Word, string]>} */
const STATES = {
  sending: ['stSending', 'calm'], unconfirmed: ['stUnconfirmed', 'doubt'], accepted: ['stAccepted', 'calm'], processing: ['stProcessing', 'calm'],
  needs_reconciliation: ['stNeeds', 'doubt'], done: ['stDone', 'good'], failed: ['stFailed', 'bad'], abandoned: ['stAbandoned', 'calm'],
  expired: ['stExpired', 'doubt'], rejected: ['stRejected', 'bad'], conflict: ['stRejected', 'bad'],
}

/**
 * @param {HTMLElement} body
 * @param {{ pick: (id: string) => void, need: (id: string) => void, more: () => void }} on
 */
export function createShelf(body, on) {
  const empty = h('p', { class: 'quiet' })
  const cards = h('ul', { class: 'cards' })
  const more = h('button', { type: 'button', class: 'more', hidden: true, onclick: on.more })
  body.append(empty, cards, more)
  /** @type {Map<string, any>} */
  const known = new Map()
  const watcher = new IntersectionObserver(entries => {
    for (const { isIntersecting, target } of entries) {
      if (isIntersecting) on.need(/** @type {HTMLElement} */ (target).dataset.id ?? '')
      known.get(/** @type {HTMLElement} */ (target).dataset.id ?? '').near = isIntersecting
    }
  }, { rootMargin: '200px' })

  /** @param {string} id */
  function make(id) {
    const image = h('img', { alt: '', loading: 'lazy', decoding: 'async', hidden: true })
    const thumb = h('span', { class: 'thumb' }, image)
    const name = h('span', { class: 'name', dir: 'auto' })
    const state = h('span', { class: 'state' })
    const when = h('time', {})
    const button = h('button', { type: 'button', class: 'card', onclick: () => on.pick(id) }, thumb, name, h('span', { class: 'under' }, state, when))
    const card = { li: h('li', { 'data-id': id }, button), button, image, name, state, when, near: false }
    known.set(id, card)
    watcher.observe(card.li)
    return card
  }

  return {
    /** @param {Task[]} tasks @param {string|undefined} shown @param {boolean} hasMore */
    draw(tasks, shown, hasMore) {
      let here = cards.firstElementChild
      for (const task of tasks) {
        const card = known.get(task.id) ?? make(task.id)
        dress(card, task, shown)
        // Only what is new is moved: there may be thousands.
        if (card.li == here) here = here.nextElementSibling
        else cards.insertBefore(card.li, here)
      }
      while (here) {
        const gone = here
        here = here.nextElementSibling
        gone.remove()
      }
      empty.hidden = tasks.length > 0
      write(empty, t('shelfEmpty'))
      more.hidden = !hasMore
      write(more, t('shelfMore'))
    },
  }

  /** @param {any} card @param {Task} task @param {string|undefined} shown */
  function dress(card, task, shown) {
    const { view, menu } = task
    const url = view.result?.image_url
    if (card.near && (!menu || view.phase == 'done' && !url)) on.need(task.id)
    const looks = [lang, view.phase, view.operation, menu, url, task.id == shown]
    if (card.looks?.every((/** @type {any} */ old, /** @type {number} */ i) => old === looks[i])) return
    card.looks = looks
    const [word, tone] = STATES[view.phase] ?? STATES.processing
    write(card.name, menu?.title ?? t('untitled'))
    write(card.state, t(word))
    set(card.state, 'data-tone', tone)
    set(card.button, 'aria-current', task.id == shown && 'true')
    const made = view.operation?.created_at
    write(card.when, made ? day(made, lang) : '')
    set(card.when, 'datetime', made)
    card.image.hidden = !url
    if (url) set(card.image, 'src', url)
  }
}
