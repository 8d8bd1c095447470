// Tests that config.schema.json is up to date, small and usable in editors, and that the package's types carry its descriptions.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { withComments } from '../../build/document-types.ts'
import { schemaText } from '../../cli/schema.ts'

const ROOT = join(import.meta.dirname, '../..')
const MAX_SCHEMA = 196_000

describe('npm run schema', () => {
  const text = schemaText()

  it('keeps config.schema.json up to date', () => {
    expect(readFileSync(join(ROOT, 'config.schema.json'), 'utf8')).to.equal(text)
  })

  it(`writes an editor schema below ${MAX_SCHEMA} bytes in which every $ref resolves`, () => {
    const { $defs } = JSON.parse(text) as { $defs: object }
    const named = new Set([...text.matchAll(/"\$ref": "#\/\$defs\/([^"]+)"/g)].map(([, name = '']) => name))
    expect([...named].sort()).to.deep.equal(Object.keys($defs).sort())
    expect(Buffer.byteLength(text)).to.be.lessThan(MAX_SCHEMA)
    expect(text).not.to.match(/"callable":/)
  })
})

describe('document-types', () => {
  it('writes description and default of a property as its comment', () => {
    const declarations = `export declare const OPTIONS: {
      readonly properties: {
        readonly path: { readonly type: 'string'; readonly description: "Where it is." } & { readonly default: '/a' };
        readonly list: { readonly default: readonly ['a']; readonly description: 'It\\'s a list.' };
        readonly bare: { readonly type: 'string' };
      };
    };`
    expect(withComments(declarations))
      .to.include("/** Where it is. Default `'/a'`. */ readonly path:")
      .and.include("/** It's a list. Default `['a']`. */ readonly list:")
      .and.include('        readonly bare:')
  })
})
