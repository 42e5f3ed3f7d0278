// Words in English and Chinese. A word that is missing in one is a mistake that
// the tests find.

/** @type {Record<string, [string, string]>} */
export const words = {
  title: ['Semel console', 'Semel 控制台'],
  skip: ['Skip to content', '跳到正文'],
  overview: ['Overview', '概览'],
  operations: ['Operations', '任务'],
  operation: ['Operation', '任务'],
  queue: ['Reconcile', '待核对'],
  signIn: ['Sign in', '登录'],
  signOut: ['Sign out', '退出'],
  token: ['Operator token', '操作员令牌'],
  signInHelp: ['It is exchanged for a cookie that no script can read.', '令牌会换成脚本无法读取的 Cookie。'],
  badToken: ['This token is not known, or has ended.', '令牌无效或已过期。'],
  notOperator: ['This token is not an operator’s.', '此令牌不是操作员令牌。'],
  language: ['中文', 'English'],
  noAnswer: ['No answer from the server; trying again.', '服务器没有回应，正在重试。'],
  seenAt: ['What is shown here is from', '此处所示内容截至'],
  noSignIn: ['No answer from the server. Try again in a moment.', '服务器没有回应，请稍后再试。'],
  moreOrLess: ['and more', '以上'],
  progress: ['Progress', '进度'],
  account: ['Account', '账户'],
  kind: ['Kind', '类型'],
  state: ['State', '状态'],
  any: ['any', '全部'],
  search: ['Find by key', '按键查找'],
  searchHelp: ['account/kind/ID, or the ID alone', '账户/类型/编号，或仅编号'],
  searchForm: ['This is neither a key nor an operation ID. Write account/kind/operation ID, or the ID alone: 1 to 128 letters, digits and . _ ~ -', '这既不是键也不是任务编号。请输入“账户/类型/任务编号”，或仅输入编号：1 到 128 个字母、数字和 . _ ~ -'],
  searchNone: ['No operation with this ID was found.', '未找到此编号的任务。'],
  searchExpired: ['This ID is older than what is remembered, so whether it was ever used can’t be said.', '此编号早于保留期限，无法得知是否用过。'],
  searchGuessed: ['Only the accounts of the newest 1,000 operations were looked in: for another one, fill in the account.', '仅查找了最近 1,000 个任务所属的账户：若属于其他账户，请填写账户。'],
  searchLeft: ['There are more places than are asked at once: fill in the account or the kind.', '可能的位置太多，未全部查找：请填写账户或类型。'],
  lookedIn: ['Looked in', '已查找'],
  searching: ['Looking…', '正在查找…'],
  find: ['Find', '查找'],
  id: ['Operation ID', '任务编号'],
  created: ['Created', '创建时间'],
  updated: ['Updated', '更新时间'],
  expires: ['Remembered until', '保留到'],
  executions: ['Executions', '执行次数'],
  attempts: ['Attempts', '发送次数'],
  revision: ['Revision', '版本'],
  reason: ['Reason', '原因'],
  more: ['Show more', '显示更多'],
  nothing: ['Nothing here.', '这里没有内容。'],
  end: ['That is all.', '已全部显示。'],
  accepted: ['accepted', '已受理'],
  processing: ['processing', '处理中'],
  succeeded: ['succeeded', '已完成'],
  failed: ['failed', '失败'],
  needs_reconciliation: ['needs reconciliation', '需要核对'],
  abandoned: ['abandoned', '已放弃'],
  contradicted: ['contradicted', '结果矛盾'],
  acknowledged: ['acknowledged', '已确认无法得知'],
  unreconciled: ['Need a verdict', '等待结论'],
  oldest: ['oldest', '最久'],
  queueAge: ['Longest wait for a worker', '等待执行最久'],
  contradictions: ['Late results that say otherwise', '与记录矛盾的迟到结果'],
  statesNow: ['Operations by state', '各状态任务数'],
  rates: ['What happened, per second', '每秒发生次数'],
  overTime: ['Over time', '随时间变化'],
  openOverTime: ['Not settled, over time', '未完结任务数量变化'],
  settledOverTime: ['Settled: change since this tab was opened', '已完结：自打开此标签页起的变化'],
  countsHelp: ['Since this tab was opened. Counts are the database’s, so of all nodes; what is older than its retention leaves them.', '自打开此标签页起。数量来自数据库，涵盖所有节点；超过保留期限的任务不再计入。'],
  ratesHelp: ['Rates per second are from the counters of the node that answered, compared with its own last answer.', '每秒速率来自作出回应的节点的计数器，只与该节点上一次的回应比较。'],
  manyNodes: ['Behind this address, one node at a time answers, so lines may alternate. Nodes seen, restarts included:', '此地址后有多个节点轮流回应，曲线可能交替。已见节点数（含重启）：'],
  ratesSoon: ['Charts are shown in a few seconds.', '几秒后显示图表。'],
  unconfirmedTitle: ['Unconfirmed is not counted here.', '此处不统计“未确认”。'],
  unconfirmedHelp: ['It is the client’s word for “no answer yet”: a server knows neither the requests that never came nor which of its answers arrived. Repeats come nearest: clients that asked again.', '“未确认”是客户端对“尚无回应”的说法：服务器既不知道从未到达的请求，也不知道哪些回应已送达。最接近的是重复请求：再次询问的客户端。'],
  accepts: ['new', '新任务'],
  replays: ['repeats', '重复请求'],
  retries: ['retries', '重试'],
  lost: ['leases lost', '失去租约'],
  unknownRate: ['ended unknown', '结果未知'],
  onlyAll: ['Counts and rates are over all accounts, so they are for operators who see them all. What needs a verdict is counted here within yours.', '统计与速率涵盖全部账户，仅对可查看全部账户的操作员显示。此处仅统计您账户内等待结论的任务。'],
  timeline: ['What happened', '经过'],
  attempt: ['attempt', '发送'],
  accept: ['recorded', '已记录'],
  execution: ['Execution', '执行'],
  leased: ['leased to', '租给'],
  begun: ['begun', '已开始'],
  notBegun: ['certainly not begun', '确定尚未开始'],
  running: ['still running', '进行中'],
  neverEnded: ['never ended: its worker is gone', '未结束：执行者已消失'],
  leaseUntil: ['lease until', '租约至'],
  ended: ['ended', '结束'],
  applied: ['applied', '已生效'],
  refused: ['refused', '被拒绝'],
  not_applied: ['not applied', '未生效'],
  unknown: ['unknown', '未知'],
  late: ['came too late, kept as evidence', '迟到，作为证据保留'],
  verdict: ['Verdict', '结论'],
  by: ['by', '由'],
  evidence: ['Evidence', '证据'],
  seen: ['What was seen', '所见'],
  contract: ['What the external service promises', '外部服务的承诺'],
  provable: ['What can still be proven', '还能证明什么'],
  p_nothing: ['No execution is in doubt: so far, certainly nothing has happened.', '没有存疑的执行：目前确定什么都没有发生。'],
  p_maybe: ['It may have happened. It is being worked on, and the contract that it began under decides what follows.', '可能已经发生。正在处理，后续由开始执行时的契约决定。'],
  p_reconcile: ['It may have happened, and nothing more is tried by itself: a person has to look at the external service.', '可能已经发生，系统不会再自动尝试：需要人工查看外部服务。'],
  p_acknowledged: ['It may have happened, and somebody has said that nobody can ever know.', '可能已经发生，已有人确认永远无法得知。'],
  p_opaque: ['Its contract allows neither a repeat nor a look-up: without an answer, no further call can tell.', '其契约既不允许重复，也不允许查询：没有回应时，再次调用也无法得知。'],
  p_repeatAlways: ['By its contract, a repeat under the same key has no second effect.', '按其契约，用同一个键重复不会产生第二次效果。'],
  p_repeatUntil: ['By its contract, a repeat under the same key has no second effect until at least', '按其契约，用同一个键重复不会产生第二次效果，至少到'],
  p_repeatAfter: ['. After that, a repeat could have a second effect, and proves nothing.', '。此后重复可能产生第二次效果，且不能证明什么。'],
  p_lookUp: ['It can be looked up: what is found is a proof; “not found” is none.', '可以查询：查到即为证明；“未找到”不是证明。'],
  p_lookUpAbsent: ['It can be looked up: what is found is a proof; “not found” is one only after the last call can no longer arrive, and another', '可以查询：查到即为证明；“未找到”要在最后一次调用不可能再到达之后，再过以下时间才是证明：'],
  p_settled: ['It is settled; nothing is left to find out.', '已有定论，无需再查。'],
  p_person: ['A person decided, by the evidence below; no call has proven it.', '由人工根据下方证据作出结论，没有调用证明过。'],
  p_abandoned: ['It was abandoned before it began: it never happened, and a late request is refused.', '在开始前已放弃：从未发生，迟到的请求会被拒绝。'],
  p_contradicted: ['A late result says otherwise: see below.', '有迟到的结果与此矛盾，见下方。'],
  stop: ['.', '。'],
  beganUnder: ['began under this contract:', '开始时的契约：'],
  beganUnderOther: ['began under another one', '开始时的契约不同'],
  notBegunUnder: ['No execution has begun. The kind says today:', '尚无执行。该类型目前的说法：'],
  todayDiffers: ['The kind says something else today. What has begun keeps the contract above.', '该类型目前的说法不同；已开始的执行仍按上述契约。'],
  today: ['What the kind says today', '该类型目前的说法'],
  externalKey: ['It is known there by the key', '它在外部服务中的键是'],
  params: ['Parameters', '参数'],
  result: ['Result', '结果'],
  resolveTitle: ['Your verdict', '您的结论'],
  v_applied: ['It happened', '已经发生'],
  v_retry: ['It did not happen; try again', '没有发生，重试'],
  v_fail: ['It did not happen; let it be', '没有发生，到此为止'],
  v_acknowledged: ['Nobody can ever know', '永远无法得知'],
  h_applied: ['It becomes succeeded.', '状态变为已完成。'],
  h_retry: ['It runs again. If it did happen, it happens twice.', '会再次执行。如果其实已经发生，就会发生两次。'],
  h_fail: ['It becomes failed.', '状态变为失败。'],
  h_acknowledged: ['It stays as it is, for ever, and leaves the queue.', '永远保持原状，并离开队列。'],
  howKnow: ['How do you know?', '您如何得知？'],
  resultHelp: ['Result to store (JSON, optional)', '要保存的结果（JSON，可选）'],
  resultBad: ['This is not JSON.', '这不是 JSON。'],
  evidenceMissing: ['Say how you know, and choose a verdict.', '请选择结论，并说明如何得知。'],
  record: ['Record the verdict', '记录结论'],
  recorded: ['Recorded.', '已记录。'],
  unconfirmed: ['No answer. It may have been recorded; sending it again is safe.', '没有回应，可能已经记录；再次发送是安全的。'],
  stale: ['It has changed since you looked. Look again, then decide.', '在您查看后已发生变化，请重新查看再决定。'],
  next: ['Next', '下一个'],
  previous: ['Previous', '上一个'],
  of: ['of', '/'],
  arrived: ['more in the queue.', '个新任务进入队列。'],
  decidedElsewhere: ['Somebody has decided this one meanwhile.', '此任务已由他人作出结论。'],
  lookAgain: ['Look again', '重新查看'],
  queueEmpty: ['Nothing needs reconciliation.', '没有需要核对的任务。'],
  keys: ['Keys: j next, k previous, 1–4 verdict, e evidence, Ctrl+Enter record', '快捷键：j 下一个，k 上一个，1–4 结论，e 证据，Ctrl+Enter 记录'],
  notFound: ['There is no such operation in the accounts that you may see.', '在您可见的账户中没有此任务。'],
  seconds: ['s', '秒'],
  minutes: ['min', '分钟'],
  hours: ['h', '小时'],
  days: ['d', '天'],
}

const stored = localStorage.getItem('semel-console-language')
export let language = stored || (navigator.language.startsWith('zh') ? 'zh' : 'en')

/** @param {string} next */
export function setLanguage(next) {
  language = next
  localStorage.setItem('semel-console-language', next)
}

/** @param {string} name */
export function t(name) {
  const pair = Object.hasOwn(words, name) && words[name]
  return pair ? pair[language === 'zh' ? 1 : 0] : name
}

/** @param {string|undefined} text a time of the interface */
export function when(text) {
  if (!text) return '–'
  const date = new Date(text)
  return date.toLocaleString(language === 'zh' ? 'zh-CN' : 'en-GB', { dateStyle: 'medium', timeStyle: 'medium' })
}

/** @param {string} text */
export function clock(text) {
  const date = new Date(text)
  if (Number.isNaN(date.getTime())) return '–'
  return date.toLocaleTimeString('en-GB') + '.' + String(date.getMilliseconds()).padStart(3, '0')
}

/** @param {number} ms */
export function age(ms) {
  const s = ms / 1000
  if (s < 120) return `${Math.round(s)} ${t('seconds')}`
  if (s < 7200) return `${Math.round(s / 60)} ${t('minutes')}`
  if (s < 172800) return `${Math.round(s / 3600)} ${t('hours')}`
  return `${Math.round(s / 86400)} ${t('days')}`
}

/** @param {number} n */
export const number = n => n.toLocaleString(language === 'zh' ? 'zh-CN' : 'en-GB')
