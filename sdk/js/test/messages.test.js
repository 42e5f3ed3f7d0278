import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describe, explain, label, language, texts } from '../src/messages.js'

const PHASES = ['sending', 'unconfirmed', 'accepted', 'processing', 'needs_reconciliation', 'done', 'failed',
  'abandoned', 'rejected', 'expired', 'conflict']
const SETTLED = ['done', 'failed', 'abandoned', 'rejected', 'expired', 'conflict']

const view = (phase, more = {}) => ({
  id: 'x', kind: 'note', phase, settled: SETTLED.includes(phase), since: 0, attempts: 1, recorded: 'unknown',
  connection: 'waiting', abandoning: false, durable: true, ...more,
})

test('the words that everybody agreed on', () => {
  assert.equal(describe(view('unconfirmed'), 'en').title, 'No confirmation yet. Looking this task up.')
  assert.equal(describe(view('unconfirmed'), 'zh').title, '暂时没有收到确认，正在查询这次任务。')
})

test('both languages say the same things', () => {
  const keys = value => value && typeof value == 'object' ? Object.keys(value).map(k => [k, keys(value[k])]) : typeof value
  assert.deepEqual(keys(texts.en), keys(texts.zh))
})

for (const lang of ['en', 'zh']) {
  test(`every phase has a title and says what happens next (${lang})`, () => {
    for (const phase of PHASES) {
      const { title, detail, actions } = describe(view(phase), lang)
      assert.ok(title, phase)
      assert.ok(detail || phase == 'done', phase)
      assert.doesNotMatch(title + detail, /[{}]|undefined/)
      for (const action of actions) assert.ok(label(action, lang))
    }
  })

  test(`"needs checking" and "unconfirmed" never offer a new one (${lang})`, () => {
    for (const phase of ['needs_reconciliation', 'unconfirmed', 'sending', 'accepted', 'processing']) {
      for (const more of [{}, { needs: 'sign-in' }, { connection: 'offline' }, { problem: { code: 'internal' } }]) {
        assert.ok(!describe(view(phase, more), lang).actions.includes('again'), phase)
      }
    }
  })

  test(`what nobody can ever know is not said to be looked into still (${lang})`, () => {
    const { title, detail, tone, actions } = describe(view('needs_reconciliation', { operation: { acknowledged: true } }), lang)
    assert.deepEqual([title, detail], texts[lang].acknowledged)
    assert.equal(tone, 'doubt')
    assert.ok(!actions.includes('again'))
  })

  test(`expiry is explained with how long things are kept (${lang})`, () => {
    const old = view('expired', { problem: { code: 'operation-expired', retention_seconds: 30 * 86400 } })
    assert.match(describe(old, lang).detail, lang == 'en' ? /kept for 30 days; this one is older, so we can't say/ : /保留30天/)
    const hours = view('expired', { problem: { code: 'operation-expired', retention_seconds: 86400 } })
    assert.match(describe(hours, lang).detail, lang == 'en' ? /24 hours/ : /24小时/)
    const clock = describe(view('expired', { recorded: 'no' }), lang)
    assert.match(clock.detail, lang == 'en' ? /clock/ : /时钟/)
  })

  test(`what is in the way is said (${lang})`, () => {
    const t = texts[lang]
    assert.ok(describe(view('sending', { connection: 'offline' }), lang).detail.includes(t.offline[1]))
    const out = describe(view('unconfirmed', { needs: 'sign-in', problem: { code: 'unauthenticated' } }), lang)
    assert.ok(out.detail.includes(t.signIn[1]))
    assert.deepEqual(out.actions, ['sign-in'])
    assert.ok(describe(view('sending', { durable: false }), lang).detail.includes(t.notDurable[1]))
    assert.equal(describe(view('accepted', { abandoning: true }), lang).title, t.abandoning[0])
    assert.ok(describe(view('processing', { problem: { code: 'already-started' } }), lang).detail.includes(t.codes['already-started']))
  })
}

test('a failure is not called one while it is not known', () => {
  assert.equal(describe(view('unconfirmed')).tone, 'doubt')
  assert.equal(describe(view('needs_reconciliation')).tone, 'doubt')
  assert.equal(describe(view('failed')).tone, 'bad')
})

test('the server\'s own words are kept apart from ours', () => {
  assert.equal(describe(view('failed', { error: { code: 'x', message: 'out of paper' } })).reason, 'out of paper')
  assert.equal(describe(view('rejected', { problem: { code: 'invalid-operation', detail: 'days: 1 to 7' } })).reason, 'days: 1 to 7')
})

test('a code that nobody knows is no error, and no prototype is read', () => {
  assert.equal(explain('brand-new'), '')
  assert.equal(explain('constructor', 'zh'), '')
})

test('languages', () => {
  for (const tag of ['zh', 'zh-CN', 'ZH-Hant']) assert.equal(language(tag), 'zh')
  for (const tag of ['en', 'de', '', undefined, null, 'zhx']) assert.equal(language(tag), 'en')
})
