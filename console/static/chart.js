// Charts, drawn as SVG. Each has a table of the same numbers for those who can't
// see it.

import { h } from './dom.js'

/**
 * Lines over time.
 * @param {{name: string, color: string, points: {at: number, value: number}[]}[]} series
 * @param {string} title
 */
export function lines(series, title) {
  const width = Math.min(1080, Math.max(296, document.documentElement.clientWidth - 66)), height = 180, left = 44, bottom = 22, top = 10
  const all = series.flatMap(s => s.points)
  const from = Math.min(...all.map(p => p.at)), to = Math.max(...all.map(p => p.at), from + 1)
  const least = -niceCeiling(Math.max(...all.map(p => -p.value), 0), 0)
  const most = niceCeiling(Math.max(...all.map(p => p.value), 0), least < 0 ? 0 : 1)
  const x = (/** @type {number} */ at) => left + (at - from) / (to - from) * (width - left - 8)
  const y = (/** @type {number} */ value) => height - bottom - (value - least) / (most - least) * (height - bottom - top)
  const marks = least === 0 ? [0, most / 2, most] : most === 0 ? [least, least / 2, 0] : [least, 0, most]
  return h('figure', { class: 'chart' },
    h('figcaption', {}, title),
    h('svg:svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `${title}: ${series.map(s => `${s.name} ${last(s.points)}`).join(', ')}` },
      marks.map(m => [
        h('svg:line', { x1: left, x2: width - 8, y1: y(m), y2: y(m), class: 'rule' }),
        h('svg:text', { x: left - 6, y: y(m) + 4, class: 'mark', 'text-anchor': 'end' }, short(m)),
      ]).flat(),
      h('svg:text', { x: left, y: height - 4, class: 'mark' }, time(from)),
      h('svg:text', { x: width - 8, y: height - 4, class: 'mark', 'text-anchor': 'end' }, time(to)),
      series.map(s => s.points.length > 0 && h('svg:polyline', { points: s.points.map(p => `${x(p.at).toFixed(1)},${y(p.value).toFixed(1)}`).join(' '), class: `line ${s.color}` }))),
    h('ul', { class: 'legend' }, series.map(s => h('li', { class: s.color }, `${s.name} `, h('b', {}, last(s.points))))))
}

/**
 * One bar, cut into shares.
 * @param {{name: string, color: string, value: number}[]} shares
 * @param {string} title
 * @param {(n: number) => string} say
 */
export function shares(shares, title, say) {
  const total = shares.reduce((sum, s) => sum + s.value, 0)
  const width = 640
  let at = 0
  return h('figure', { class: 'chart' },
    h('figcaption', {}, title),
    h('svg:svg', { viewBox: `0 0 ${width} 24`, role: 'img', 'aria-label': `${title}: ${shares.map(s => `${s.name} ${s.value}`).join(', ')}`, class: 'shares', preserveAspectRatio: 'none' },
      shares.filter(s => s.value > 0).map(s => {
        const w = Math.max(2, s.value / total * width)
        const rect = h('svg:rect', { x: at, y: 0, width: w, height: 24, class: `share ${s.color}` })
        at += w
        return rect
      })),
    h('ul', { class: 'legend' }, shares.map(s => h('li', { class: s.color }, `${s.name} `, h('b', {}, say(s.value))))))
}

const last = (/** @type {{value: number}[]} */ points) => points.length ? short(points[points.length - 1].value) : '–'
const short = (/** @type {number} */ n) => n >= 1000 ? `${+(n / 1000).toFixed(1)}k` : String(+n.toFixed(n < 10 ? 2 : 0))
const time = (/** @type {number} */ at) => new Date(at).toLocaleTimeString('en-GB')

/** @param {number} n @param {number} none what it is for nothing */
function niceCeiling(n, none) {
  if (n <= 0) return none
  const unit = 10 ** Math.floor(Math.log10(n))
  return [1, 2, 5, 10].map(f => f * unit).find(f => f >= n) || n
}
