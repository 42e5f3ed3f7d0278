/**
 * Server-Sent Events, read over `fetch`, so that requests can carry an Authorization header.
 *
 * @module
 */

/**
 * @typedef {object} ServerEvent
 * @property {string} type "message" unless the stream says otherwise
 * @property {string} data
 * @property {string} lastEventId
 */

/**
 * Returns a parser for one stream, by the WHATWG HTML standard ("Interpreting an event
 * stream"). Feed it text in any pieces, decoded as the standard says: without the byte order
 * mark. It calls `emit` for every complete event and `retry` for every reconnection time. An
 * event that is cut off is not emitted.
 *
 * @param {(event: ServerEvent) => void} emit
 * @param {(ms: number) => void} [retry]
 * @returns {(text: string) => void}
 */
export function createParser(emit, retry) {
  let rest = ''
  let afterCr = false
  let type = ''
  let data = ''
  let lastEventId = ''

  /** @param {string} line */
  function line(line) {
    if (!line) {
      // Without any data line there is no event; an ID alone still counts.
      if (data) emit({ type: type || 'message', data: data.slice(0, -1), lastEventId })
      data = type = ''
      return
    }
    // "name", "name:value" or "name: value"; a comment has no name.
    const [, name, value = ''] = /^([^:]*)(?:: ?([^]*))?/.exec(line) ?? []
    if (name == 'event') type = value
    else if (name == 'data') data += value + '\n'
    else if (name == 'id' && !value.includes('\0')) lastEventId = value
    else if (name == 'retry' && /^[0-9]+$/.test(value)) retry?.(+value)
  }

  return text => {
    if (!text) return
    // CR ends a line at once; the LF of a CRLF may come in the next piece.
    if (afterCr && text[0] == '\n') text = text.slice(1)
    afterCr = text.endsWith('\r')
    const lines = (rest + text).split(/\r\n|\r|\n/)
    rest = lines.pop() ?? ''
    lines.forEach(line)
  }
}

/**
 * Reads a stream to its end. Resolves when it ends; rejects when it breaks.
 *
 * @param {ReadableStream<Uint8Array<ArrayBuffer>>} body
 * @param {(text: string) => void} feed called for every piece, comments and all
 */
export async function readText(body, feed) {
  // It takes the byte order mark off.
  const decoder = new TextDecoder()
  const reader = body.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    feed(decoder.decode(value, { stream: true }))
  }
}
