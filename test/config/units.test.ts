// Tests parsing of durations and sizes, and that schema patterns match the parsers.
import { expect } from 'chai'
import fc from 'fast-check'
import { DURATION_PATTERN, parseDuration, parseSize, SIZE_PATTERN } from '../../core/mcp/units.ts'

describe('parseDuration', () => {
  const durations: [string | number, number][] = [
    ['250ms', 250],
    ['30s', 30_000],
    ['1.5s', 1_500],
    ['5m', 300_000],
    ['2h', 7_200_000],
    ['1d', 86_400_000],
    [1_500, 1_500],
    [0, 0],
  ]
  for (const [written, milliseconds] of durations) {
    it(`parses ${JSON.stringify(written)} as ${milliseconds} ms`, () => {
      expect(parseDuration(written)).to.equal(milliseconds)
    })
  }

  for (const written of ['', '30', '30 s', '-1s', 's', '1w', '1.s', '5M', -1, Number.NaN, Number.POSITIVE_INFINITY]) {
    it(`rejects ${String(written) || 'an empty string'} and shows valid formats`, () => {
      expect(() => parseDuration(written)).to.throw(RangeError, "expected a duration such as '30s', or milliseconds")
    })
  }
})

describe('parseSize', () => {
  const sizes: [string | number, number][] = [
    ['10b', 10],
    ['64kb', 65_536],
    ['1.5mb', 1_572_864],
    ['1gb', 1_073_741_824],
    [4_096, 4_096],
  ]
  for (const [written, bytes] of sizes) {
    it(`parses ${JSON.stringify(written)} as ${bytes} bytes`, () => {
      expect(parseSize(written)).to.equal(bytes)
    })
  }

  for (const written of ['4', '4 mb', '4MB', '4m', '-4mb', -1]) {
    it(`rejects ${written} and shows valid formats`, () => {
      expect(() => parseSize(written)).to.throw(RangeError, "expected a size such as '4mb', or bytes")
    })
  }
})

describe('Schema patterns for units', () => {
  const accepts = (parse: (value: string) => number, text: string): boolean => {
    try {
      return parse(text) >= 0
    } catch {
      return false
    }
  }
  const written = fc.stringMatching(/^-?\d{0,3}\.?\d{0,2} ?[a-z]{0,2}$/)

  it('accept exactly the values that the parsers accept', () => {
    fc.assert(
      fc.property(written, text => {
        expect(new RegExp(DURATION_PATTERN).test(text)).to.equal(accepts(parseDuration, text))
        expect(new RegExp(SIZE_PATTERN).test(text)).to.equal(accepts(parseSize, text))
      }),
    )
  })
})
