/**
 * Switches that cause real faults, and what they have done.
 *
 * @module
 */

import { clock, h, set, write } from './dom.js'
import { lang, t } from './lang.js'

/** @typedef {'lose_answer'|'kill_worker'|'slow_generator'} Cause */

/** @type {[Cause, import('./words.js').Word, import('./words.js').Word][]} */
const CAUSES = [['lose_answer', 'lose', 'loseText'], ['kill_worker', 'kill', 'killText'], ['slow_generator', 'slow', 'slowText']]

/**
 * @param {HTMLElement} body @param {boolean} may this account move them
 * @param {(change: Record<string, boolean>) => Promise<any>} move resolves with how they stand then
 */
export function createCauses(body, may, move) {
  /** What was pressed and is not answered yet. @type {Map<Cause, boolean>} */
  const asked = new Map()
  /** @type {any} */
  let now
  const rows = CAUSES.map(([cause, word, text]) => {
    const input = h('input', { type: 'checkbox', role: 'switch', id: cause, disabled: true,
      'aria-describedby': `${cause}-about ${cause}-state`, onchange: () => press(cause, input.checked) })
    const label = h('label', { for: cause })
    const about = h('p', { class: 'about', id: `${cause}-about` })
    const state = h('p', { class: 'state', id: `${cause}-state` })
    return { cause, word, text, input, label, about, state, row: h('li', { class: 'cause' }, input, h('div', {}, label, about, state)) }
  })
  const foreign = h('p', { class: 'quiet', hidden: may })
  body.append(h('ul', {}, ...rows.map(({ row }) => row)), foreign)

  /** @param {Cause} cause @param {boolean} on */
  async function press(cause, on) {
    asked.set(cause, on)
    draw(now)
    const after = await move({ [cause]: on })
    asked.delete(cause)
    draw(after ?? now)
  }

  /** @param {any} causes undefined: no answer */
  function draw(causes) {
    now = causes ?? now
    for (const { cause, word, text, input, label, about, state } of rows) {
      const on = asked.get(cause) ?? now?.[cause] ?? false
      if (input.checked != on) input.checked = on
      set(input, 'disabled', !may || !now)
      write(label, t(word))
      write(about, t(text))
      write(state, causes ? status(cause, on) : now ? t('causesStale') : '')
      set(state, 'data-on', `${on}`)
    }
    write(foreign, t('causesForeign'))
  }

  /** @param {Cause} cause @param {boolean} on */
  function status(cause, on) {
    const fired = cause == 'lose_answer' ? now.losses : cause == 'kill_worker' ? now.kills : []
    const stands = t(!on ? 'off' : cause == 'slow_generator' ? 'on' : 'armed')
    if (!fired.length) return stands
    const time = clock(fired.at(-1).at, lang)
    const did = t(fired.length > 1 ? 'firedMany' : 'firedOnce', { n: fired.length, time })
    return lang == 'zh' ? `${stands}，${did}` : `${stands}; ${did}`
  }

  return { draw, redraw: () => draw(now) }
}
