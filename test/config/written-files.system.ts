// Tests that files generated from schemas are up to date, small and usable in editors.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { writtenFiles } from '../../build/write-schema.ts'
import { writeTypes } from '../../build/write-types.ts'

const ROOT = join(import.meta.dirname, '../..')
const MAX_SCHEMA = 130_000

describe('npm run schema', () => {
  const files = writtenFiles()

  for (const [file, text] of Object.entries(files)) {
    it(`keeps ${file} up to date`, () => {
      expect(readFileSync(join(ROOT, file), 'utf8')).to.equal(text)
    })
  }

  it('leaves no file of a removed plugin', () => {
    const folder = 'core/config/plugin-options'
    const there = readdirSync(join(ROOT, folder)).map(file => `${folder}/${file}`)
    expect(there).to.have.members(Object.keys(files).filter(file => file.startsWith(`${folder}/`)))
  })

  it('writes each type once', () => {
    const shapes = Object.entries(files).flatMap(([, text]) =>
      [...text.matchAll(/^export (?:interface|type) (\w+)/gm)].map(([, name]) => name),
    )
    expect(shapes.filter((name, index) => shapes.indexOf(name) !== index)).to.deep.equal([])
    expect(shapes).to.include('RedisTls')
  })

  it(`writes an editor schema below ${MAX_SCHEMA} bytes in which every $ref resolves`, () => {
    const text = files['config.schema.json'] ?? ''
    const { $defs } = JSON.parse(text) as { $defs: object }
    const named = new Set([...text.matchAll(/"\$ref": "#\/\$defs\/([^"]+)"/g)].map(([, name = '']) => name))
    expect([...named].sort()).to.deep.equal(Object.keys($defs).sort())
    expect(Buffer.byteLength(text)).to.be.lessThan(MAX_SCHEMA)
    expect(text).not.to.match(/"(tsType|callable)":/)
  })
})

const textOf = (declarations: ReadonlyMap<string, string>) => [...declarations.values()].join('\n')

describe('writeTypes', () => {
  const shape = (properties: object, required: readonly string[] = []) => ({
    title: 'Shape',
    type: 'object',
    properties,
    required: [...required],
  })

  it('writes the description, default and optionality of a key', () => {
    const { declarations, filled } = writeTypes([
      shape({ a: { type: 'string', description: 'One.' }, b: { type: 'integer', default: 3 } }, ['a']),
    ])
    const text = textOf(declarations)
    expect(text).to.include('/** One. */\na: string\n').and.include('/** Default `3`. */\nb?: number\n')
    expect(text).to.include('export interface FilledShape extends Shape {\nb: number\n}')
    expect(filled.get('Shape')).to.equal('FilledShape')
  })

  it('names types from $defs, including recursive types', () => {
    const node = {
      title: 'Node',
      type: 'object',
      properties: { inner: { type: 'array', items: { $ref: '#/$defs/n' } } },
    }
    const { declarations } = writeTypes([{ ...shape({ root: { $ref: '#/$defs/n' } }), $defs: { n: node } }])
    const text = textOf(declarations)
    expect(text).to.include('root?: Node\n').and.include('inner?: Node[]\n')
  })

  it('rejects two types with one name, and schemas without a type', () => {
    const one = { title: 'Twice', type: 'object', properties: { a: { type: 'string' } } }
    const other = { title: 'Twice', type: 'object', properties: { b: { type: 'string' } } }
    expect(() => writeTypes([shape({ one, other })])).to.throw('two schemas have the title Twice')
    expect(() => writeTypes([shape({ a: {} })])).to.throw('there is no type for {}')
  })
})
