/**
 * The form: a title, days with one dish per line, colours and width. What is wrong is said at
 * the field, once somebody has tried to send it.
 *
 * @module
 */

import { h, set, write } from './dom.js'
import { list, t } from './lang.js'
import { LIMITS, lines, read } from './menu.js'

/** @import {Form, Menu, Fault} from './menu.js' */

/**
 * @param {HTMLFormElement} form
 * @param {{ change: (form: Form) => void, send: (menu: Menu) => void }} on
 */
export function createEditor(form, on) {
  /** Somebody has tried to send it: from now on it is checked with every key. */
  let tried = false
  let count = 0

  const title = field('title', h('input', { type: 'text', autocomplete: 'off', enterkeyhint: 'next' }))
  const days = h('ol', { class: 'days' })
  const add = h('button', { type: 'button', class: 'add', onclick: addDay })
  const full = h('span', { class: 'quiet' })
  const light = choice('light')
  const dark = choice('dark')
  const theme = h('fieldset', { class: 'theme' }, h('legend'), h('div', { class: 'choices' }, light.box, dark.box))
  const width = field('width', h('input', { type: 'text', inputmode: 'numeric', autocomplete: 'off' }), h('span', { class: 'unit' }))
  const generate = h('button', { type: 'submit', class: 'primary', id: 'generate' })
  const note = h('p', { class: 'note', id: 'menu-note', role: 'status', 'aria-live': 'polite' })
  const keeps = h('p', { class: 'quiet' })
  form.append(title.box, days, h('p', { class: 'adding' }, add, full), h('div', { class: 'looks' }, theme, width.box), generate, note, keeps)

  form.addEventListener('input', () => {
    changed()
    write(note, '')
  })
  form.addEventListener('submit', event => {
    event.preventDefault()
    send()
  })

  /** @param {string} name @param {HTMLInputElement|HTMLTextAreaElement} input @param {any} [extra] */
  function field(name, input, extra) {
    const id = `f-${name}`
    const label = h('label', { for: id })
    const problem = h('p', { class: 'problem', id: `${id}-problem` })
    set(input, 'id', id)
    set(input, 'aria-describedby', `${extra ? `${id}-extra ` : ''}${id}-problem`)
    if (extra) set(extra, 'id', `${id}-extra`)
    return { box: h('div', { class: `field ${name.split('-')[0]}` }, label, input, extra, problem), label, input, problem, extra }
  }

  /** @param {'light'|'dark'} value */
  function choice(value) {
    const input = h('input', { type: 'radio', name: 'theme', value, id: `theme-${value}` })
    const label = h('label', { for: `theme-${value}`, class: value })
    return { input, label, box: h('div', { class: 'choice' }, input, label) }
  }

  /** @param {{day: string, dishes: string}} value */
  function makeDay(value) {
    const n = count++
    const name = field(`day-${n}`, h('input', { type: 'text', autocomplete: 'off', enterkeyhint: 'next' }))
    const dishes = field(`dishes-${n}`, h('textarea', { rows: 2, spellcheck: 'false' }), h('span', { class: 'tally' }))
    const remove = h('button', { type: 'button', class: 'remove', onclick: () => removeDay(item) },
      h('svg:svg', { viewBox: '0 0 16 16', 'aria-hidden': 'true', focusable: 'false' }, h('svg:path', { d: 'M4 4l8 8M12 4l-8 8' })))
    name.input.value = value.day
    dishes.input.value = value.dishes
    const item = { li: h('li', { class: 'day' }, name.box, remove, dishes.box), name, dishes, remove }
    item.li.item = item
    return item
  }

  const items = () => [...days.children].map(li => li.item)

  /** @returns {Form} */
  const value = () => ({
    title: title.input.value,
    days: items().map(item => ({ day: item.name.input.value, dishes: item.dishes.input.value })),
    theme: dark.input.checked ? 'dark' : 'light',
    width: width.input.value,
  })

  function addDay() {
    if (items().length >= LIMITS.days) return
    const taken = items().map(item => item.name.input.value.trim())
    const item = makeDay({ day: list('newDay').find((/** @type {string} */ day) => !taken.includes(day)) ?? '', dishes: '' })
    days.append(item.li)
    changed()
    item.dishes.input.focus()
  }

  /** @param {any} item */
  function removeDay(item) {
    const all = items()
    if (all.length == 1) return
    const i = all.indexOf(item)
    const day = called(item, i)
    item.li.remove()
    changed()
    const next = items()[Math.min(i, all.length - 2)]
    next.remove.disabled ? next.name.input.focus() : next.remove.focus()
    const [before, after] = t('dayRemoved', { day: '\0' }).split('\0')
    note.replaceChildren(before, h('bdi', {}, day), after) // its marks turn nothing else
  }

  /** @param {any} item @param {number} i */
  const called = (item, i) => item.name.input.value.trim() || t('dayN', { n: i + 1 })

  function changed() {
    draw()
    on.change(value())
  }

  function send() {
    tried = true
    const { menu, faults } = read(value())
    draw()
    if (!faults.length) return on.send(menu)
    write(note, t(faults.length == 1 ? 'fixOne' : 'fixMany', { n: faults.length }))
    const first = /** @type {HTMLElement|null} */ (form.querySelector('[aria-invalid="true"]'))
    first?.focus()
  }

  /** All words, tallies and problems. */
  function draw() {
    const all = items()
    const { faults } = read(value())
    /** @param {any} field @param {string} name */
    const complain = (field, name) => {
      const fault = tried && faults.find(f => f.field == name)
      set(field.input, 'aria-invalid', fault ? 'true' : null)
      write(field.problem, fault ? t(fault.word, fault.values) : '')
    }
    write(title.label, t('fieldTitle'))
    complain(title, 'title')
    all.forEach((item, i) => {
      const n = lines(item.dishes.input.value).filter(Boolean).length
      set(item.li, 'data-n', i)
      write(item.name.label, t('fieldDay'))
      write(item.dishes.label, t('fieldDishes'))
      set(item.dishes.input, 'aria-label', t('dishesOf', { day: called(item, i) }))
      set(item.dishes.input, 'rows', Math.max(2, item.dishes.input.value.split('\n').length))
      write(item.dishes.extra, t('nDishes', { n, most: LIMITS.dishes }))
      item.dishes.extra.classList.toggle('near', n > LIMITS.dishes - 4)
      set(item.remove, 'aria-label', t('removeDay', { day: called(item, i) }))
      set(item.remove, 'title', t('removeDay', { day: called(item, i) }))
      item.remove.disabled = all.length == 1
      complain(item.name, `day.${i}`)
      complain(item.dishes, `dishes.${i}`)
    })
    write(add, t('addDay'))
    add.disabled = all.length >= LIMITS.days
    write(full, all.length >= LIMITS.days ? t('daysFull') : '')
    write(theme.firstElementChild, t('theme'))
    write(light.label, t('light'))
    write(dark.label, t('dark'))
    write(width.label, t('width'))
    write(width.extra, t('pixels', { least: LIMITS.least, most: LIMITS.most }))
    complain(width, 'width')
    write(generate, t('generate'))
    write(keeps, t('keeps'))
  }

  return {
    value,
    draw,
    /** @param {Form} form */
    fill(form) {
      tried = false
      title.input.value = form.title
      days.replaceChildren(...form.days.slice(0, LIMITS.days).map(day => makeDay(day).li))
      dark.input.checked = form.theme == 'dark'
      light.input.checked = form.theme != 'dark'
      width.input.value = form.width
      draw()
    },
    /** @param {string} text */
    say: text => write(note, text),
  }
}
