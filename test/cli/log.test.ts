// Tests the readable log format, without control characters.
import { expect } from 'chai'
import { createPretty } from '../../cli/log.ts'

const ESC = '\u001b'

const line = (fields: object) => `${JSON.stringify({ level: 50, time: 0, ...fields })}\n`

describe('a readable log line', () => {
  const pretty = createPretty(false)

  it('has time, level and message, the fields on one line, and the stack below', () => {
    const err = { type: 'Error', message: 'no', stack: 'Error: no\n    at look (a.ts:1:2)', hidden: '3 frames' }
    const [first, ...others] = pretty(line({ msg: 'a handler failed', name: 'stock', err })).split('\n')
    expect(first).to.match(/^\[\d\d:\d\d:\d\d\.000\] ERROR: a handler failed name=stock$/)
    expect(others).to.deep.equal(['    err: Error: no', '            at look (a.ts:1:2)', '            … 3 frames', ''])
  })

  it('prints the cause of an error without a stack', () => {
    const text = pretty(line({ msg: 'a', err: { type: 'Error', message: 'no', cause: 'gone' } }))
    expect(text).to.contain('err: Error: no\n        caused by: gone\n')
  })

  for (const [what, fields] of [
    ['a message', { msg: `a${ESC}[2Jb` }],
    ['a field', { msg: 'a', uri: `x${ESC}]0;title\u0007` }],
    ['a C1 control', { msg: `\u009b2J`, uri: '\u009b2J' }],
    ['a nested field', { msg: 'a', about: { [`k${ESC}`]: `v${ESC}\r\b` } }],
    ['a key', { msg: 'a', [`k${ESC}\u009b`]: 1 }],
    ['an error', { msg: 'a', err: { type: `E${ESC}`, message: `m${ESC}`, stack: `s${ESC}\u202e` } }],
    ['the direction of text', { msg: 'a\u202eb\u2066', user: '\u200f' }],
    ['what is escaped already', { msg: 'a\\u001b \\\\u001b' }],
  ] as const) {
    it(`has no control characters: ${what}`, () => {
      const text = pretty(line(fields))
      expect(text.replaceAll('\n', '')).not.to.match(/[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/u)
      expect(text).to.contain('\\u')
    })
  }

  it('starts no line with text of a client', () => {
    const text = pretty(
      line({ msg: 'a\n[00:00:00] INFO: forged', name: 'b\n[00:00:00] INFO: forged', 'c\n[00:00:00] d': 1 }),
    )
    expect(text.split('\n').filter(begun => /^\[/.test(begun))).to.have.length(1)
  })

  it('has colours only on request', () => {
    expect(pretty(line({ msg: 'a' }))).not.to.contain(ESC)
    expect(createPretty(true)(line({ msg: 'a' }))).to.contain(`${ESC}[`)
  })
})
