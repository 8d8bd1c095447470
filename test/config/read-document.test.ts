// Configs in YAML: where each key stands, keys that stand twice, and documents with very many keys.
import { expect } from 'chai'
import { ReadError, readYaml } from '../../core/config/read-document.ts'
import { itThorough } from '../support/thorough.ts'

function faultOf(source: string): ReadError {
  try {
    readYaml(source)
  } catch (error) {
    if (error instanceof ReadError) return error
    throw error
  }
  throw new Error('nothing was refused')
}

describe('readYaml', () => {
  it('locates keys in block maps, flow maps, lists and aliases', () => {
    const { locate } = readYaml('a: &a\n  b: { c: 1,\n    d: 2 }\nlist:\n  - x: 1\n  - y: 2\nsame: *a\n7: seven\n')
    const places = [['a', 'b', 'd'], ['list', 1, 'y'], ['same', 'b', 'c'], ['7'], ['a', 'none'], ['list', 2]]
    expect(places.map(path => locate(path))).to.deep.equal([3, 6, 2, 8, undefined, undefined])
  })

  it('refuses a duplicate key in a block map or a flow map, and names the key and both lines', () => {
    for (const [source, key, first] of [
      ['a: 1\nb:\n  c: 1\n  c: 2\n', 'c', 3],
      ['a: 1\nb:\n  {\n  c: 1, c: 2 }\n', 'c', 4],
      ['x: 1\ny:\n  - a: 1\n    "a": 2\n', 'a', 3],
    ] as const) {
      const { message, line } = faultOf(source)
      expect([message, line], source).to.deep.equal([`duplicate key "${key}", first on line ${first}`, 4])
    }
  })

  it('does not name a duplicate key without a value, which may be a secret', () => {
    expect(faultOf('secrets: { s3cret,\n  s3cret }\n').message).to.equal('duplicate key, first on line 1')
  })

  itThorough('reads and locates 20,000 keys of one map', () => {
    const count = 20_000
    const { config, locate } = readYaml(Array.from({ length: count }, (_, index) => `k${index}: 1\n`).join(''))
    expect(Object.keys(config as object)).to.have.length(count)
    for (let index = 0; index < count; index++) if (locate([`k${index}`]) !== index + 1) expect.fail(`k${index}`)
  })
})
