import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createParser, readText } from '../src/events.js'

/** Small and repeatable. */
function chance(seed) {
  return () => {
    seed = (seed * 1664525 + 1013904223) >>> 0
    return seed / 2 ** 32
  }
}

function parse(pieces) {
  const events = []
  const retries = []
  const feed = createParser(e => events.push([e.type, e.data, e.lastEventId]), ms => retries.push(ms))
  for (const piece of pieces) feed(piece)
  return { events, retries }
}

const CASES = [
  ['one event', 'data: a\n\n', [['message', 'a', '']]],
  ['types, IDs, many lines', 'event: state\nid: 4\ndata: a\ndata: b\n\n', [['state', 'a\nb', '4']]],
  ['CR alone', 'id: 1\rdata: a\r\rdata: b\r\r', [['message', 'a', '1'], ['message', 'b', '1']]],
  ['CRLF', 'data: a\r\ndata: b\r\n\r\n', [['message', 'a\nb', '']]],
  ['mixed line ends', 'data: a\r\ndata: b\rdata: c\n\r\ndata: d\n\n', [['message', 'a\nb\nc', ''], ['message', 'd', '']]],
  ['a byte order mark that the decoder left belongs to a field name', '\uFEFFdata: a\n\n', []],
  ['a comment', ': keep-alive\n\ndata: a\n: more\n\n', [['message', 'a', '']]],
  ['only one space is taken off', 'data:  a\ndata:b\ndata\n\n', [['message', ' a\nb\n', '']]],
  ['an empty data line is an event, no data line is none', 'data\n\nevent: x\n\ndata: a\n\n', [['message', '', ''], ['message', 'a', '']]],
  ['an ID alone counts for later events', 'id: 7\n\ndata: a\n\n', [['message', 'a', '7']]],
  ['an empty ID resets', 'id: 7\ndata: a\n\nid\ndata: b\n\n', [['message', 'a', '7'], ['message', 'b', '']]],
  ['an ID with NUL is ignored', 'id: 7\ndata: a\n\nid: 8\0\ndata: b\n\n', [['message', 'a', '7'], ['message', 'b', '7']]],
  ['unknown fields are ignored', 'dataa: x\nfoo\n:x\ndata: a:b\n\n', [['message', 'a:b', '']]],
  ['a cut event is not told', 'data: a\n\ndata: b\n', [['message', 'a', '']]],
  ['the type does not stick', 'event: state\ndata: a\n\ndata: b\n\n', [['state', 'a', ''], ['message', 'b', '']]],
  ['Chinese and 4-byte characters', 'data: 菜单😀\n\n', [['message', '菜单😀', '']]],
]

for (const [name, text, want] of CASES) {
  test(`${name}, whole, letter by letter, and in any pieces`, () => {
    assert.deepEqual(parse([text]).events, want)
    assert.deepEqual(parse([...text].flatMap(letter => [letter, ''])).events, want)
    const next = chance(text.length)
    for (let round = 0; round < 200; round++) {
      const pieces = []
      for (let at = 0; at < text.length;) {
        const to = at + 1 + Math.floor(next() * 6)
        pieces.push(text.slice(at, to))
        at = to
      }
      assert.deepEqual(parse(pieces).events, want, JSON.stringify(pieces))
    }
  })
}

test('retry is digits and nothing else', () => {
  assert.deepEqual(parse(['retry: 250\nretry: 1.5\nretry: -1\nretry:\nretry: ten\nretry:30\n\n']).retries, [250, 30])
})

test('any stream, cut into bytes anywhere, gives the same events', async () => {
  const next = chance(42)
  const pick = list => list[Math.floor(next() * list.length)]
  for (let round = 0; round < 300; round++) {
    const mark = pick(['', '\uFEFF'])
    let text = mark && pick(['', '\uFEFF'])
    for (let i = 0; i < 12; i++) {
      text += pick(['data', 'event', 'id', 'retry', '', 'foo']) + pick(['', ':', ': ']) +
        pick(['', 'a', '菜单', '😀', '12', 'x:y', ' \0', '\uFEFF']) + pick(['\n', '\r', '\r\n', '\n\n', '\r\r', '\r\n\r\n'])
    }
    const want = parse([text]).events
    const bytes = new TextEncoder().encode(mark + text)
    const got = []
    const feed = createParser(e => got.push([e.type, e.data, e.lastEventId]))
    const stream = new ReadableStream({
      start(controller) {
        for (let at = 0; at < bytes.length;) {
          const to = at + 1 + Math.floor(next() * 5)
          controller.enqueue(bytes.slice(at, to))
          at = to
        }
        controller.close()
      },
    })
    await readText(stream, feed)
    assert.deepEqual(got, want, JSON.stringify(text))
  }
})
