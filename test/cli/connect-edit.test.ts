// Tests edits of the JSON files of other programs: one entry changes, all other values and comments stay.
import { expect } from 'chai'
import fc from 'fast-check'
import { setEntry } from '../../cli/connect/write-config.ts'
import { caseCount } from '../support/thorough.ts'

const ENTRY = { url: 'http://127.0.0.1:3000/' }
const set = (text: string, name = 'clock') => setEntry(text, ['mcpServers', name], ENTRY)

describe('an entry in a JSON file', () => {
  for (const [what, before, after] of [
    [
      'an empty file',
      '',
      '{\n  "mcpServers": {\n    "clock": {\n      "url": "http://127.0.0.1:3000/"\n    }\n  }\n}\n',
    ],
    [
      'an empty object',
      '{}',
      '{\n  "mcpServers": {\n    "clock": {\n      "url": "http://127.0.0.1:3000/"\n    }\n  }\n}',
    ],
    [
      'an object with other keys, indented by tabs',
      '{\n\t"theme": "dark" // mine\n}\n',
      '{\n\t"theme": "dark",\n\t"mcpServers": {\n\t\t"clock": {\n\t\t\t"url": "http://127.0.0.1:3000/"\n\t\t}\n\t} // mine\n}\n',
    ],
    [
      'other servers, with comments and a trailing comma',
      '{\n  /* a */ "mcpServers": {\n    "a": { "command": "x" }, // the {first}\n  },\n  "z": [1, -2.5e3],\n}\n',
      '{\n  /* a */ "mcpServers": {\n    "a": {\n      "command": "x"\n    },\n    "clock": {\n      "url": "http://127.0.0.1:3000/"\n    }, // the {first}\n  },\n  "z": [1, -2.5e3],\n}\n',
    ],
    [
      'an older entry of the name',
      '{\n  "mcpServers": {\n    "clock": { "url": "old" }, "b": {}\n  }\n}',
      '{\n  "mcpServers": {\n    "clock": {\n      "url": "http://127.0.0.1:3000/"\n    }, "b": {}\n  }\n}',
    ],
    [
      'a byte order mark and Windows line ends',
      '\ufeff{\r\n  "mcpServers": {}\r\n}\r\n',
      '\ufeff{\r\n  "mcpServers": {\r\n    "clock": {\r\n      "url": "http://127.0.0.1:3000/"\r\n    }\r\n  }\r\n}\r\n',
    ],
  ] as const) {
    it(`is added to ${what}`, () => expect(set(before)?.text).to.equal(after))
  }

  it('is not added twice, in any notation', () => {
    expect(set('{"mcpServers":{"clock":{ /* here */ "url" : "http:\\/\\/127.0.0.1:3000/" }}}')).to.equal(undefined)
  })

  it('reports whether it replaces another entry with the same name', () => {
    expect(set('{"mcpServers":{"clock":{"url":"old"}}}')?.replaces).to.equal(true)
    expect(set('{"mcpServers":{"other":{}}}')?.replaces).to.equal(false)
  })

  for (const [what, text, why] of [
    ['no JSON', '{ "a": ', /JSON/],
    ['a list', '[]', /not a JSON object/],
    ['servers that are a list', '{"mcpServers":[]}', /"mcpServers" in it is not an object/],
    ['two documents', '{}{}', /JSON/],
  ] as const) {
    it(`is rejected in ${what}`, () => expect(() => set(text)).to.throw(why))
  }

  it('keeps a key `__proto__` of another entry', () => {
    const text = '{"a":{"__proto__":{"b":1}},"mcpServers":{}}'
    expect(set(text)?.text.replace(/\s/g, '')).to.include('"a":{"__proto__":{"b":1}}').and.include('"clock"')
  })

  it('preserves all other values and the indentation', () => {
    const name = fc.string({ maxLength: 8 }).filter(text => text !== '__proto__')
    const json = fc.jsonValue({ maxDepth: 3 })
    fc.assert(
      fc.property(
        fc.dictionary(name, json),
        fc.option(fc.dictionary(name, json)),
        fc.constantFrom(undefined, 1, 2, '\t'),
        name,
        (others, servers, indent, key) => {
          const before = { ...others, ...(servers && { mcpServers: servers }) }
          fc.pre(servers !== null || !Object.hasOwn(others, 'mcpServers'))
          const text = JSON.stringify(before, undefined, indent)
          const edit = set(text, key)
          expect(JSON.parse(edit?.text ?? text)).to.deep.equal({
            ...JSON.parse(text),
            mcpServers: { ...JSON.parse(text).mcpServers, [key]: ENTRY },
          })
        },
      ),
      { numRuns: caseCount(60, 20) },
    )
  })
})
