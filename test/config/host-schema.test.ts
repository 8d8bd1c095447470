// Tests the generated JSON Schema of the config: validity, closed objects and plugin options.
import { Ajv2020 } from 'ajv/dist/2020.js'
import ajvFormats from 'ajv-formats'
import { expect } from 'chai'
import { writtenSchema } from '../../core/config/written-schema.ts'

const PLUGINS = {
  health: {
    options: {
      type: 'object',
      additionalProperties: false,
      properties: { path: { type: 'string', default: '/health' }, again: { $ref: '#/$defs/again' } },
      $defs: { again: { type: 'array', items: { $ref: '#/$defs/again' }, title: 'Again' } },
      required: ['path'],
    },
  },
}
/** What is required stands beside a `$ref`, and its key behind that. */
const LOOSER = { allowUnionTypes: true, strictTypes: false, strictRequired: false }
const MINIMAL = {
  server: { name: 'a', version: '1' },
  toolsets: { a: './a.ts' },
  routes: { '/': { toolsets: ['a'] } },
}

describe('writtenSchema', () => {
  const schema = writtenSchema(PLUGINS)
  const ajv = new Ajv2020({ allErrors: true, strict: true, ...LOOSER })
  ajvFormats.default(ajv)
  ajv.addVocabulary(['patternErrorMessage'])

  it('produces a valid schema in strict draft 2020-12', () => {
    expect(schema['$schema']).to.equal('https://json-schema.org/draft/2020-12/schema')
    expect(ajv.validateSchema(schema), ajv.errorsText()).to.equal(true)
    expect(ajv.compile(schema)(MINIMAL)).to.equal(true)
  })

  it('produces plain JSON deterministically', () => {
    expect(JSON.parse(JSON.stringify(schema))).to.deep.equal(schema)
    expect(JSON.stringify(writtenSchema(PLUGINS))).to.equal(JSON.stringify(schema))
  })

  it('describes every option and closes every object', () => {
    const visit = (node: unknown, place: string): void => {
      if (typeof node !== 'object' || node === null) return
      const { properties, additionalProperties } = node as Record<string, unknown>
      if (properties !== undefined && place !== '#/properties' && !place.endsWith('/properties')) {
        expect(additionalProperties, place).not.to.equal(undefined)
        for (const [name, option] of Object.entries(properties as Record<string, object>)) {
          if (
            !place.includes('/plugins') &&
            !place.endsWith('/health') &&
            !('anyOf' in option) &&
            !('$ref' in option)
          ) {
            expect(option, `${place} ${name}`).to.have.property('description')
          }
        }
      }
      for (const [key, child] of Object.entries(node)) visit(child, `${place}/${key}`)
    }
    visit(schema, '#')
  })

  it('omits keys that only code can set', () => {
    expect(Object.keys(schema['properties'] as object)).not.to.include.members(['configureSession', 'runSession'])
  })

  const validate = (plugins: object, routePlugins: object = {}): boolean =>
    ajv.validate(schema, { ...MINIMAL, routes: { '/': { toolsets: 'a', plugins: routePlugins } }, plugins })

  it('allows own options or false for built-in plugins, and anything for other names', () => {
    expect(validate({ health: { path: '/h', again: [[[]]] } })).to.equal(true)
    expect(validate({ health: { path: '/h', again: [[['x']]] } })).to.equal(false)
    expect(validate({ health: false, './mine.ts': { any: 1 }, other: false })).to.equal(true)
    expect(validate({ health: { pth: '/h' } })).to.equal(false)
    expect(validate({ health: {} })).to.equal(false)
    expect(validate({ other: true })).to.equal(false)
  })

  it('does not require plugin options on a route', () => {
    expect(validate({}, { health: {} })).to.equal(true)
    expect(validate({}, { health: { pth: 1 } })).to.equal(false)
  })
})
