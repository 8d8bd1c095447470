// Tests that prebuilt schema validators return the same results and errors as validators that ajv compiles at startup.
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { ValidateFunction } from 'ajv/dist/2020.js'
import { expect } from 'chai'
import { metaValidatorsText, ownSchemas, validatorsText } from '../../build/write-validators.ts'
import { explainProblems } from '../../core/config/explain-problems.ts'
import { createAjv, schemaKey } from '../../core/config/validate-value.ts'
import type { JsonSchema } from '../../core/index.ts'
import { DIALECTS, LENIENT } from '../../core/mcp/schema/ajv.ts'
import { makeFolder, removeFolders } from './folder.ts'

const ROOT = join(import.meta.dirname, '../..')

const VALUES = [
  ...[0, 1.5, -1, '', 'x', '30s', 'https://a.example', '4 MB', true, false, null],
  ...[[], [1], ['x', 2, ''], {}, { nobody: 1 }, () => 1],
]

const NESTED = [1.5, -1, 'x', '30s', 'https://a.example', true, null, [1], { nobody: 1 }]

/** Values that try every key of a schema, each with all that may stand where it belongs. */
function* attempts(schema: JsonSchema): Generator<unknown> {
  yield* VALUES
  const keys = Object.keys((schema['properties'] ?? {}) as object)
  for (const key of keys) {
    for (const value of VALUES) yield { [key]: value }
    for (const value of NESTED) {
      yield { [key]: { x: value, '/': value } }
      yield { [key]: [value, { policy: { anyOf: [{ scope: value }] }, origins: value }] }
    }
  }
  for (const value of VALUES) yield Object.fromEntries(keys.map(key => [key, value]))
}

describe('Prebuilt validators', () => {
  after(removeFolders)
  let built: Readonly<Record<string, ValidateFunction>> = {}
  let builtMeta: Readonly<Record<string, ValidateFunction>> = {}

  before(async () => {
    const own = validatorsText(ownSchemas())
    const texts = { 'built.js': own, 'meta.js': metaValidatorsText() }
    const folder = await makeFolder(texts)
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    built = (await import(pathToFileURL(join(folder, 'built.js')).href)).BUILT_VALIDATORS
    builtMeta = (await import(pathToFileURL(join(folder, 'meta.js')).href)).BUILT_META_VALIDATORS
  })

  it('match ajv-compiled validators for every host schema', () => {
    let tried = 0
    let refused = 0
    for (const schema of ownSchemas()) {
      const validate = built[schemaKey(schema)]
      const compiled = createAjv().compile(schema)
      for (const value of attempts(schema as JsonSchema)) {
        const [own, other] = [validate, compiled].map(one => {
          const fits = one?.(value)
          return JSON.stringify({ fits, told: explainProblems(one?.errors ?? [], { value, schema, at: [] }) })
        })
        expect(own).to.equal(other)
        tried += 1
        if (own?.startsWith('{"fits":false')) refused += 1
      }
    }
    expect(refused).to.be.greaterThan(1_000)
    expect(tried - refused).to.be.greaterThan(100)
  })

  it('reject the same schemas as the compiled meta-schema, with the same errors', () => {
    const { id, create } = DIALECTS['draft 2020-12']
    const compiled = create(LENIENT).getSchema(id)
    const validate = builtMeta['draft 2020-12']
    let refused = 0
    for (const keyword of ['type', 'properties', 'items', '$defs', 'required', 'pattern', 'minimum', '$ref', 'anyOf']) {
      for (const value of [...VALUES, 'object', { a: { type: 'string' } }, [{ type: 'nothing' }]]) {
        const schema = { type: 'object', [keyword]: value, properties: { deep: { [keyword]: value } } }
        const answers = [validate, compiled].map(one => ({ fits: one?.(schema), errors: one?.errors }))
        expect(answers[0]).to.deep.equal(answers[1])
        if (answers[0]?.fits === false) refused += 1
      }
    }
    expect(refused).to.be.within(50, 200)
  })

  it('use a key derived from the exact schema', () => {
    const [schema = {}] = ownSchemas()
    expect(built).to.have.property(schemaKey(structuredClone(schema)))
    expect(built).not.to.have.property(schemaKey({ ...schema, required: [] }))
  })
})
