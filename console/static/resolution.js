import { api, pathOf, Problem } from './api.js'
import { h } from './dom.js'
import { t } from './i18n.js'
import { passing } from './poll.js'

const CHOICES = /** @type {[string, {verdict: string, then?: string}][]} */ ([
  ['applied', { verdict: 'applied' }],
  ['retry', { verdict: 'not_applied', then: 'retry' }],
  ['fail', { verdict: 'not_applied', then: 'fail' }],
  ['acknowledged', { verdict: 'acknowledged' }],
])

/** What was typed and not yet recorded, by operation: it outlives a redraw. @type {Map<string, {chosen: string, evidence: string, result: string}>} */
const drafts = new Map()

/**
 * The form for a verdict. Nothing is chosen beforehand.
 * @param {any} op
 * @param {{done: () => any, changed: () => any, fail: (problem: unknown) => void, notice?: string}} context
 */
export function resolution(op, { done, changed, fail, notice }) {
  const place = pathOf(op.key)
  const draft = drafts.get(place) || { chosen: '', evidence: '', result: '' }
  const wrong = h('p', { class: 'wrong', role: 'alert' }, notice || '')
  const keep = () => drafts.set(place, { chosen: String(new FormData(form).get('verdict') || ''), evidence: text.value, result: result.value })
  const text = h('textarea', { id: 'evidence', name: 'evidence', rows: 3, required: true, dir: 'auto', maxlength: 60000, value: draft.evidence })
  const result = h('textarea', { id: 'result', rows: 2, spellcheck: 'false', value: draft.result })
  const resultField = h('div', { hidden: draft.chosen !== 'applied' }, h('label', { for: 'result' }, t('resultHelp')), result)
  const button = h('button', { class: 'main', id: 'record' }, t('record'))
  const choice = (/** @type {string} */ name, /** @type {number} */ i) => h('label', { class: 'choice' },
    h('input', { type: 'radio', name: 'verdict', value: name, id: `verdict-${i + 1}`, checked: draft.chosen === name, change: () => { resultField.hidden = name !== 'applied' } }),
    h('span', {}, h('b', {}, `${i + 1}  ${t('v_' + name)}`), h('small', {}, t('h_' + name))))

  const submit = async (/** @type {Event} */ e) => {
    e.preventDefault()
    const chosen = CHOICES.find(([name]) => name === new FormData(form).get('verdict'))
    if (!chosen || !text.value.trim()) {
      wrong.textContent = t('evidenceMissing')
      return
    }
    const body = /** @type {any} */ ({ ...chosen[1], evidence: text.value.trim() })
    if (chosen[0] === 'applied' && result.value.trim()) {
      try {
        body.result = JSON.parse(result.value)
      } catch {
        wrong.textContent = t('resultBad')
        return
      }
    }
    button.disabled = true
    wrong.textContent = ''
    try {
      await api.resolve(op.key, op.revision, body)
      drafts.delete(place)
      await done()
    } catch (problem) {
      if (!(problem instanceof Problem) || problem.status === 401) return fail(problem)
      if (problem.status === 412) return changed()
      wrong.textContent = passing(problem) ? t('unconfirmed') : problem.message
    } finally {
      button.disabled = false
    }
  }
  const form = h('form', { class: 'panel resolution', novalidate: true, submit, input: keep, keydown: (/** @type {KeyboardEvent} */ e) => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) { e.preventDefault(); form.requestSubmit() } } },
    h('h2', {}, t('resolveTitle')),
    h('fieldset', {}, h('legend', { class: 'sr' }, t('verdict')), CHOICES.map(([name], i) => choice(name, i))),
    h('label', { for: 'evidence' }, t('howKnow')), text, resultField, wrong, button)
  return form
}
