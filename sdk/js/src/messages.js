/**
 * What to say to people, in English and Chinese. Each message answers three questions: where
 * does it stand, what happens next, must I do anything. A state that nobody is sure of is
 * never called a failure, and never offers to make a new one.
 *
 * @module
 */

/** @import {Problem, View} from './types.js' */

/** @typedef {'en'|'zh'} Lang */

/**
 * What a person may do: look now, stop and make sure that it never happens, sign in, or ask
 * for a new operation.
 *
 * @typedef {'check'|'abandon'|'sign-in'|'again'} Action
 */

/**
 * @typedef {object} Message
 * @property {'calm'|'good'|'bad'|'doubt'} tone
 * @property {string} title where it stands
 * @property {string} detail what it means and what happens next; may be empty
 * @property {string} reason in the server's own words; may be empty, may be in any language
 * @property {Action[]} actions
 */

const EN = {
  sending: ['Sending.', 'It is kept in this browser first, so a reload does not lose it.'],
  unconfirmed: ['No confirmation yet. Looking this task up.', 'It may have been recorded already. It keeps its identity, so it happens at most once, however often this is asked.'],
  accepted: ['Accepted.', 'It is recorded and waits for its turn. You may close this page.'],
  processing: ['In progress.', 'You may close this page.'],
  needs_reconciliation: ['Needs checking.', 'It is not known whether this took effect, so it is not tried again blindly. Somebody looks at what really happened and records it; this page then shows the answer by itself. You need not do anything.'],
  acknowledged: ['Nobody can know.', 'It was looked into, and nobody can find out whether this took effect. It is left as it is, and not tried again.'],
  done: ['Done.', ''],
  failed: ['This did not work.', 'Nothing took effect.'],
  abandoned: ['Stopped.', 'It will never happen, even if a late request still arrives.'],
  rejected: ['Not accepted.', 'Nothing was recorded.'],
  expired: ['Too old to say.', 'Tasks are kept for {kept}; this one is older, so we can\'t say whether it happened. Please look for its result before you ask for a new one.'],
  clock: ['Not accepted: it looks too old.', 'Nothing was recorded. The clock of this device may be wrong, or the task has waited here for very long.'],
  conflict: ['Not accepted.', 'Its identity is known with a different request, which is left as it is.'],
  offline: ['', 'You are offline. It goes on when the network is back.'],
  signIn: ['', 'Please sign in. It goes on by itself afterwards.'],
  abandoning: ['Stopping.', 'Making sure that it never happens.'],
  notDurable: ['', 'This browser keeps nothing, so please leave this page open until it is settled.'],
  kept: ['a limited time', '{n} hours', '{n} days'],
  actions: { check: 'Look now', abandon: 'Stop, and make sure that it never happens', 'sign-in': 'Sign in', again: 'Make a new one' },
  progress: 'Progress',
  codes: {
    'invalid-operation': 'The request is not valid.',
    unauthenticated: 'You are signed out.',
    forbidden: 'You may not do that.',
    'unknown-kind': 'The server does not know this kind of task.',
    'operation-not-found': 'The server does not find this task at the moment.',
    'fingerprint-mismatch': 'The same identity was used for a different request.',
    'operation-abandoned': 'It was stopped before it began.',
    'already-started': 'It had already begun and can no longer be stopped.',
    'in-progress': 'It is being recorded right now.',
    'outcome-unknown': 'It is not known yet whether it happened.',
    'operation-expired': 'It is older than what is kept.',
    'accept-deadline-passed': 'It came too late to be accepted.',
    'too-large': 'The request is too large.',
    'too-many-requests': 'There are too many requests just now.',
    'store-unavailable': 'The server can\'t reach its store just now.',
    'retry-transaction': 'The server asks for another try.',
    internal: 'Something is wrong at the server.',
    'no-answer': 'No answer came.',
    'unclear-answer': 'The answer was not from the service itself.',
    'other-account': 'You are signed in with another account.',
    'storage-unavailable': 'This browser does not let the page write. Nothing is sent meanwhile.',
    'not-stored': 'This browser did not let the page write, so nothing was sent.',
    'invalid-params': 'This can\'t be sent.',
    closed: 'This page has stopped its work.',
  },
}

/** @type {typeof EN} */
const ZH = {
  sending: ['正在发送。', '任务已先保存在此浏览器中，刷新页面也不会丢失。'],
  unconfirmed: ['暂时没有收到确认，正在查询这次任务。', '任务可能已被记录。它的编号保持不变，无论查询多少次，最多只会执行一次。'],
  accepted: ['已受理。', '任务已记录，正在排队。可以关闭此页面。'],
  processing: ['正在处理。', '可以关闭此页面。'],
  needs_reconciliation: ['需要核实。', '目前无法确定任务是否已生效，因此不会盲目重试。工作人员会核实实际情况并记录结果，之后此页面会自动显示答案，您无需操作。'],
  acknowledged: ['无法得知。', '已经核实过，但无法查明任务是否已生效。它会保持原状，不会再次尝试。'],
  done: ['已完成。', ''],
  failed: ['未能完成。', '没有产生任何效果。'],
  abandoned: ['已停止。', '即使迟到的请求到达，也不会再执行。'],
  rejected: ['未被受理。', '没有留下任何记录。'],
  expired: ['时间太久，无法确认。', '任务记录保留{kept}，这次任务已超过期限，无法确认是否执行过。重新发起之前，请先查看是否已有结果。'],
  clock: ['未被受理：任务看起来太旧。', '没有留下任何记录。可能是本设备的时钟不准，或任务在此等待过久。'],
  conflict: ['未被受理。', '同一编号已用于另一个请求，该请求保持不变。'],
  offline: ['', '当前离线，网络恢复后会自动继续。'],
  signIn: ['', '请登录，之后会自动继续。'],
  abandoning: ['正在停止。', '正在确保它不会执行。'],
  notDurable: ['', '此浏览器不保存数据，在任务结束前请不要关闭此页面。'],
  kept: ['一段时间', '{n}小时', '{n}天'],
  actions: { check: '立即查询', abandon: '停止，并确保不会执行', 'sign-in': '登录', again: '重新发起' },
  progress: '进度',
  codes: {
    'invalid-operation': '请求无效。',
    unauthenticated: '您尚未登录。',
    forbidden: '您没有权限。',
    'unknown-kind': '服务器不认识这类任务。',
    'operation-not-found': '服务器暂时找不到这次任务。',
    'fingerprint-mismatch': '同一编号已用于另一个请求。',
    'operation-abandoned': '任务在开始前已被停止。',
    'already-started': '任务已经开始，无法再停止。',
    'in-progress': '任务正在记录中。',
    'outcome-unknown': '尚不确定是否已执行。',
    'operation-expired': '任务已超过保留期限。',
    'accept-deadline-passed': '到达太晚，未被受理。',
    'too-large': '请求太大。',
    'too-many-requests': '当前请求过多。',
    'store-unavailable': '服务器暂时无法访问存储。',
    'retry-transaction': '服务器要求重试。',
    internal: '服务器出现问题。',
    'no-answer': '没有收到答复。',
    'unclear-answer': '答复并非来自本服务。',
    'other-account': '当前登录的是另一个账户。',
    'storage-unavailable': '此浏览器不允许写入，期间不会发送任何内容。',
    'not-stored': '此浏览器不允许写入，因此没有发送任何内容。',
    'invalid-params': '内容无法发送。',
    closed: '此页面已停止工作。',
  },
}

/** All texts, to be read, or changed by a page that wants other words. */
export const texts = { en: EN, zh: ZH }

/** The language for a BCP 47 tag: Chinese for any `zh`, else English. @param {string|null|undefined} tag @returns {Lang} */
export const language = tag => (/^zh\b/i.test(tag ?? '') ? 'zh' : 'en')

/**
 * One sentence for a code, of a problem or of a SemelError.
 *
 * @param {string} code @param {Lang} [lang] @returns {string} empty for a code that is not known here
 */
export function explain(code, lang = 'en') {
  /** @type {Record<string, string>} */
  const codes = texts[lang].codes
  return Object.hasOwn(codes, code) ? codes[code] : ''
}

/** The text of an action, for a button. @param {Action} action @param {Lang} [lang] */
export const label = (action, lang = 'en') => texts[lang].actions[action]

/**
 * What to say about a view.
 *
 * @param {View} view @param {Lang} [lang] @returns {Message}
 */
export function describe(view, lang = 'en') {
  const t = texts[lang]
  const { phase, problem, needs, settled, abandoning } = view
  const key = abandoning ? 'abandoning'
    : phase == 'expired' && view.recorded == 'no' ? 'clock'
    : phase == 'needs_reconciliation' && view.operation?.acknowledged ? 'acknowledged'
    : phase
  const [title, about] = t[key]
  const hindered = needs ? t.signIn[1] : !settled && view.connection == 'offline' ? t.offline[1] : ''
  const why = problem && key != 'expired' && key != 'clock' ? explain(problem.code, lang) : ''
  const detail = [
    phase == 'unconfirmed' && problem?.code == 'no-answer' ? '' : why,
    hindered || fill(about, { kept: kept(problem, lang) }),
    settled || view.durable ? '' : t.notDurable[1],
  ]
  return {
    title,
    detail: detail.filter(Boolean).join(lang == 'zh' ? '' : ' '),
    reason: view.error?.message ?? problem?.detail ?? view.progress?.note ?? '',
    tone: tone(view),
    actions: actions(view),
  }
}

/** @param {View} view @returns {Message['tone']} */
function tone({ phase }) {
  if (phase == 'done') return 'good'
  if (phase == 'failed' || phase == 'rejected' || phase == 'conflict') return 'bad'
  if (phase == 'unconfirmed' || phase == 'needs_reconciliation' || phase == 'expired') return 'doubt'
  return 'calm'
}

/** @param {View} view @returns {Action[]} */
function actions({ phase, settled, needs, connection, abandoning }) {
  if (settled) return phase == 'rejected' ? [] : ['again']
  /** @type {Action[]} */
  const offer = []
  if (needs) offer.push('sign-in')
  else if (connection == 'waiting' || connection == 'offline') offer.push('check')
  const stoppable = phase == 'sending' || phase == 'unconfirmed' || phase == 'accepted'
  if (stoppable && !abandoning && !needs) offer.push('abandon')
  return offer
}

/** How long operations are kept. @param {Problem|undefined} problem @param {Lang} lang */
function kept(problem, lang) {
  const seconds = problem?.retention_seconds
  const [some, hours, days] = texts[lang].kept
  if (!seconds) return some
  return seconds < 172_800
    ? fill(hours, { n: `${Math.round(seconds / 3600)}` })
    : fill(days, { n: `${Math.round(seconds / 86_400)}` })
}

/** @param {string} text @param {Record<string, string>} values */
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? '')
