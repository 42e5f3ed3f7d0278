/**
 * Operation IDs. They are random, made before the first send, and never derived from
 * content: the same menu saved twice on purpose is two operations.
 *
 * @module
 */

/**
 * Returns a fresh UUIDv7 (RFC 9562): 48 bits of time, 74 bits of chance.
 *
 * @param {number} [now] milliseconds since 1970
 * @param {Uint8Array} [chance] 10 random bytes
 * @returns {string}
 */
export function newId(now = Date.now(), chance = crypto.getRandomValues(new Uint8Array(10))) {
  chance[0] = chance[0] & 15 | 0x70
  chance[2] = chance[2] & 63 | 0x80
  return Array.from(chance, byte => byte.toString(16).padStart(2, '0'))
    .reduce((text, byte) => text + byte, now.toString(16).padStart(12, '0'))
    .replace(/(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
