// Tests responses of 1 MB that are worst cases for the JSON reader.
import { expect } from 'chai'
import { type Api, sentBy, startApi, textOf } from './api.ts'
import { count, printCounts } from './attack-counts.ts'

const LONG = 1_000_000
const large = { maxResponse: 4 * LONG, timeout: 60_000 }
/** Texts of 1 MB, and whether they are JSON. A leading space makes a text differ from its compact form. */
const SHAPES: Readonly<Record<string, readonly [json: () => string, isJson: boolean]>> = {
  'a long string': [() => ` ["${'a'.repeat(LONG)}"]`, true],
  'a string of escapes': [() => ` ["${'\\\\'.repeat(LONG / 2)}"]`, true],
  'a string of quotes': [() => ` ["${'\\"'.repeat(LONG / 2)}"]`, true],
  'a long key': [() => ` {"${'a'.repeat(LONG)}":1}`, true],
  'a long integer': [() => ` [${'9'.repeat(LONG)}]`, true],
  'a long fraction': [() => ` [0.${'0'.repeat(LONG)}1]`, true],
  'a long exponent': [() => ` [1e-${'9'.repeat(LONG)}]`, true],
  'many large numbers': [() => ` [${'12345678901234567890,'.repeat(LONG / 21)}1]`, true],
  'many numbers': [() => ` [${'1,'.repeat(LONG / 2)}1]`, true],
  'many strings': [() => ` [${'"",'.repeat(LONG / 3)}1]`, true],
  'many equal keys': [() => ` {${'"a":1,'.repeat(LONG / 6)}"b":1}`, true],
  'many keys': [() => ` {${Array.from({ length: LONG / 20 }, (_, index) => `"key-${index}":true`).join(',')}}`, true],
  'many arrays': [() => ` [${'[],'.repeat(LONG / 3)}1]`, true],
  'many objects': [() => ` [${'{"a":[]},'.repeat(LONG / 9)}1]`, true],
  'white space': [() => `[${' '.repeat(LONG)}1]`, true],
  'brackets in a string': [() => ` ["${'[{'.repeat(LONG / 2)}"]`, true],
  'open brackets': [() => '['.repeat(LONG), false],
  'an open string of quotes after brackets': [() => `${'['.repeat(600)}"${'\\"'.repeat(LONG / 2)}`, false],
  'an open string after brackets': [() => `${'['.repeat(600)}"${'a'.repeat(LONG)}`, false],
  'an open string of quotes after many arrays': [() => `[${'[],'.repeat(600)}"${'\\"'.repeat(LONG / 2)}`, false],
  'minus signs after brackets': [() => `${'['.repeat(600)}${'-'.repeat(LONG)}`, false],
  'digits after brackets': [() => `${'['.repeat(600)}${'1'.repeat(LONG)}`, false],
}

describe('A response of 1 MB', () => {
  let api: Api

  before(async () => {
    api = await startApi()
  })
  after(async () => {
    await api[Symbol.asyncDispose]()
    printCounts()
  })

  for (const [what, [json, isJson]] of Object.entries(SHAPES)) {
    it(`is read with ${what}`, async () => {
      count('response bombs')
      const body = json()
      api.answer = (_, res) => res.setHeader('Content-Type', 'application/json').end(body)
      const { result } = await sentBy(api, {}, {}, large)
      if (isJson) expect(result.isError, textOf(result).slice(0, 200)).to.not.equal(true)
      expect(textOf(result)).to.not.equal('')
      if (!isJson) expect(result.structuredContent).to.equal(undefined)
      else if (what === 'many equal keys') expect(textOf(result)).to.include('repeats the key "a"')
      else expect(result.structuredContent).to.not.equal(undefined)
    })
  }
})
