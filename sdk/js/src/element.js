/**
 * `<semel-operation>`: state, progress and messages of one operation, ready-made.
 *
 * ```js
 * import '@semel/browser/element.js'
 * document.querySelector('semel-operation').operation = await semel.submit('note', { text: 'Hi' })
 * ```
 *
 * - `operation` (property): what {@link Client} gave you.
 * - `lang` (attribute, on it or on anything around it): `zh…` is Chinese, else English.
 * - Events, which bubble: `semel-view` (detail: the view), `semel-again` and `semel-sign-in`
 *   (detail: the operation), when a person asks for it. Stopping and looking it does itself.
 * - Slot: what belongs between message and buttons, such as the result.
 * - Parts: `box`, `title`, `progress`, `detail`, `reason`, `actions`, `button`.
 * - Custom properties: `--semel-color`, `--semel-quiet`, `--semel-background`, `--semel-border`,
 *   `--semel-accent`, `--semel-good`, `--semel-bad`, `--semel-doubt`, `--semel-radius`,
 *   `--semel-space`, `--semel-height` (kept free from the start, so that nothing jumps).
 *
 * It needs no inline style and no inline script, and works under a strict Content-Security-Policy
 * and Trusted Types. A change of the title is announced to screen readers, politely and once.
 *
 * @module
 */

import { describe, label, language, texts } from './messages.js'

/** @import {Action} from './messages.js' */
/** @import {OperationHandle} from './operation.js' */
/** @import {View} from './types.js' */

const CSS = `
:host { display: block; }
:host([hidden]) { display: none; }
.box {
  --c: var(--semel-color, #1b1f24);
  --q: var(--semel-quiet, #4c5561);
  --t: var(--semel-accent, #0b57d0);
  box-sizing: border-box; min-height: var(--semel-height, 11rem);
  display: flex; flex-direction: column; gap: calc(var(--semel-space, 1rem) / 2);
  padding: var(--semel-space, 1rem); color: var(--c); background: var(--semel-background, #fff);
  border: 1px solid var(--semel-border, #c4cad2); border-inline-start: 4px solid var(--t);
  border-radius: var(--semel-radius, .5rem); font: inherit; line-height: 1.5; overflow-wrap: anywhere;
}
.good { --t: var(--semel-good, #176b37); }
.bad { --t: var(--semel-bad, #b3261e); }
.doubt { --t: var(--semel-doubt, #8a5300); }
p { margin: 0; }
.title { font-weight: 600; min-height: 1.5em; }
.title:focus { outline: none; }
.detail { color: var(--q); min-height: 3em; }
.reason { color: var(--q); }
.reason:empty { display: none; }
progress { width: 100%; height: .5rem; accent-color: var(--t); }
.idle { visibility: hidden; }
.actions { display: flex; flex-wrap: wrap; gap: .5rem; margin-block-start: auto; min-height: 2.75rem; }
button {
  font: inherit; color: var(--c); background: transparent; min-height: 2.75rem; padding: .25rem .75rem;
  border: 1px solid var(--q); border-radius: var(--semel-radius, .5rem); cursor: pointer;
}
button[hidden] { display: none; }
button:focus-visible { outline: 3px solid var(--t); outline-offset: 2px; }
@media (prefers-color-scheme: dark) {
  .box {
    --c: var(--semel-color, #e6e9ee); --q: var(--semel-quiet, #aab3c0); --t: var(--semel-accent, #8ab4f8);
    background: var(--semel-background, #16191d); border-color: var(--semel-border, #444c57);
    border-inline-start-color: var(--t);
  }
  .good { --t: var(--semel-good, #6dd58c); }
  .bad { --t: var(--semel-bad, #f2b8b5); }
  .doubt { --t: var(--semel-doubt, #f3bf6b); }
}
`

/** @type {CSSStyleSheet|undefined} */
let sheet

/** @type {Action[]} */
const ACTIONS = ['sign-in', 'check', 'abandon', 'again']

const Base = /** @type {typeof HTMLElement} */ (globalThis.HTMLElement ?? class {})

export class SemelOperationElement extends Base {
  static observedAttributes = ['lang']

  /** @type {OperationHandle|undefined} */
  #operation
  /** @type {(() => void)|undefined} */
  #off
  #parts

  constructor() {
    super()
    const root = this.attachShadow({ mode: 'open' })
    if (!sheet) {
      sheet = new CSSStyleSheet()
      sheet.replaceSync(CSS)
    }
    root.adoptedStyleSheets = [sheet]
    const box = part('div', 'box')
    const title = part('p', 'title')
    const progress = /** @type {HTMLProgressElement} */ (part('progress', 'progress'))
    const detail = part('p', 'detail')
    const reason = part('p', 'reason')
    const actions = part('div', 'actions')
    title.setAttribute('role', 'status')
    title.setAttribute('aria-live', 'polite')
    title.setAttribute('aria-atomic', 'true')
    title.tabIndex = -1
    // Whatever comes from elsewhere may run in the other direction.
    reason.dir = 'auto'
    const buttons = ACTIONS.map(action => {
      const button = /** @type {HTMLButtonElement} */ (part('button', 'button'))
      button.type = 'button'
      button.hidden = true
      // The second click of a double click is meant for what was there at the first one.
      button.addEventListener('click', event => event.detail < 2 && this.#act(action))
      actions.append(button)
      return button
    })
    box.append(title, progress, detail, reason, document.createElement('slot'), actions)
    root.append(box)
    this.#parts = { box, title, progress, detail, reason, buttons }
    progress.classList.add('idle')
  }

  /** The operation that is shown. */
  get operation() {
    return this.#operation
  }

  set operation(operation) {
    this.#off?.()
    this.#off = undefined
    this.#operation = operation ?? undefined
    if (this.isConnected) this.#follow()
  }

  connectedCallback() {
    if (!this.#off) this.#follow()
  }

  disconnectedCallback() {
    this.#off?.()
    this.#off = undefined
  }

  attributeChangedCallback() {
    this.#render()
  }

  #follow() {
    this.#render()
    this.#off = this.#operation?.on(view => {
      this.#render()
      this.dispatchEvent(new CustomEvent('semel-view', { bubbles: true, composed: true, detail: view }))
    })
  }

  /** @param {Action} action */
  #act(action) {
    const operation = this.#operation
    if (!operation) return
    if (action == 'check') operation.check()
    else if (action == 'abandon') operation.abandon().catch(() => {})
    else this.dispatchEvent(new CustomEvent(`semel-${action}`, { bubbles: true, composed: true, detail: operation }))
  }

  #render() {
    const { box, title, progress, detail, reason, buttons } = this.#parts
    const view = this.#operation?.view
    const around = /** @type {HTMLElement|null} */ (this.closest('[lang]'))
    const lang = language(around?.lang ?? globalThis.navigator?.language)
    const message = view && describe(view, lang)
    box.lang = lang
    box.className = `box ${message?.tone ?? ''}`
    write(title, message?.title)
    write(detail, message?.detail)
    write(reason, message?.reason)
    this.#renderProgress(progress, view, texts[lang].progress)
    const active = this.shadowRoot?.activeElement
    buttons.forEach((button, i) => {
      write(button, label(ACTIONS[i], lang))
      button.hidden = !message?.actions.includes(ACTIONS[i])
    })
    // A person at the keyboard must not be thrown to the top of the page.
    if (active instanceof HTMLElement && active.hidden) title.focus()
  }

  /** @param {HTMLProgressElement} bar @param {View|undefined} view @param {string} name */
  #renderProgress(bar, view, name) {
    const { fraction, note } = view?.progress ?? {}
    bar.setAttribute('aria-label', note ? `${name}: ${note}` : name)
    if (fraction === undefined) bar.removeAttribute('value')
    else bar.value = Math.min(1, Math.max(0, fraction))
    const idle = view?.phase != 'processing'
    bar.classList.toggle('idle', idle)
    bar.setAttribute('aria-hidden', `${idle}`)
  }
}

/** @param {string} tag @param {string} name */
function part(tag, name) {
  const element = document.createElement(tag)
  element.className = name
  element.setAttribute('part', name)
  return element
}

/** Only what differs, so that a screen reader does not say it twice. @param {Element} element @param {string} [text] */
function write(element, text = '') {
  if (element.textContent != text) element.textContent = text
}

if (globalThis.customElements && !customElements.get('semel-operation')) {
  customElements.define('semel-operation', SemelOperationElement)
}
