// Tests line lookup in TypeScript configs: correct lines for literals, no line for computed values.
import { expect } from 'chai'
import fc from 'fast-check'
import { locateDefinition, locateInCode } from '../../core/config/locate-in-code.ts'
import { readJson } from '../../core/config/read-document.ts'
import type { Path } from '../../core/http/errors.ts'
import { caseCount } from '../support/thorough.ts'

const lineOf = (source: string, ...path: (string | number)[]): number | undefined => locateInCode(source)(path)

describe('locateInCode', () => {
  it('finds keys after strings, comments, templates and regular expressions with brackets', () => {
    const source = [
      "import { defineConfig } from 'mcp-host' // export default {",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: source code
      'const note = `a ${[1, { b: `}` }].map(x => x)} http: {`',
      'export default defineConfig({',
      '  server: { name: \'}\', version: "{" }, /* http: { port: 1 } */',
      '  // http: {',
      '  pattern: /[/}]+\\/{/g,',
      '  half: 4 / 2 / 1,',
      '  http: {',
      '    port: 3000,',
      '  },',
      '})',
    ].join('\n')
    expect(lineOf(source, 'http', 'port')).to.equal(9)
    expect(lineOf(source, 'http')).to.equal(8)
    expect(lineOf(source, 'server', 'version')).to.equal(4)
    expect(locateInCode(source)(['server', 'version'])).to.equal(4)
    expect(lineOf(source, 'note')).to.equal(undefined)
  })

  it('finds quoted keys, list entries, methods and the keys after them', () => {
    const source = [
      'export default {',
      '  routes: {',
      "    '/admin': {",
      '      toolsets: [',
      "        'a',",
      '        { x: 1 },',
      '      ],',
      '    },',
      '  },',
      '  async runSession(request, session, run) { if (a) { await run() } },',
      '  configureSession: (request, { id }) => { return { http: 1 } },',
      '  stateless,',
      '  tools: { callTimeout: 5 } as const,',
      '} satisfies Config',
    ].join('\n')
    expect(lineOf(source, 'routes', '/admin', 'toolsets', 1)).to.equal(6)
    expect(lineOf(source, 'routes', '/admin', 'toolsets', 1, 'x')).to.equal(6)
    expect(lineOf(source, 'runSession')).to.equal(10)
    expect(lineOf(source, 'configureSession')).to.equal(11)
    expect(lineOf(source, 'stateless')).to.equal(12)
    expect(lineOf(source, 'tools', 'callTimeout')).to.equal(13)
    expect(lineOf(source, 'http')).to.equal(undefined)
  })

  it('follows an identifier to its declaration', () => {
    const source =
      'const base = { stateless: true }\nconst config: Config = {\n  stateless: false,\n}\nexport default config\n'
    expect(lineOf(source, 'stateless')).to.equal(3)
    expect(lineOf(source.replace('default config', 'default defineConfig(config)'), 'stateless')).to.equal(3)
  })

  const unsure: [string, string][] = [
    ['a key that a later spread may replace', 'export default { http: 1, ...more }'],
    ['a key that a computed one may replace', 'export default { http: 1, [name]: 2 }'],
    ['an argument of another function', 'export default withDefaults({ http: 1 })'],
    ['a value that is only part of an expression', 'export default { a: { http: 1 }.x, b: [1].map(f) }'],
    ['a file without a default export', 'const config = { http: 1 }'],
    ['broken code', "export default { a: 'x\n http"],
  ]
  for (const [what, source] of unsure) {
    it(`returns no line for ${what}`, () => {
      expect(lineOf(source, 'http')).to.equal(undefined)
      expect(lineOf(source, 'a', 'http')).to.equal(undefined)
    })
  }

  it('finds keys after type arguments', () => {
    expect(lineOf('export default {\n  a: f<string, http, number>(1),\n  http: 1\n}', 'http')).to.equal(3)
  })

  it('follows an identifier to the declaration in its own scope', () => {
    expect(lineOf('const c = { http: 1 }\n{ const c = {} }\nexport default c', 'http')).to.equal(1)
  })

  it('finds keys after a spread', () => {
    expect(lineOf('export default {\n  ...base,\n  http: { ...x, port: 1 },\n}', 'http', 'port')).to.equal(3)
  })

  it('returns no line for list entries after a spread', () => {
    const source = 'export default { secrets: [a, ...more, b] }'
    expect(lineOf(source, 'secrets', 0)).to.equal(1)
    expect(lineOf(source, 'secrets', 2)).to.equal(undefined)
  })

  it('finds every key of a JSON-formatted value on the same line as the JSON locator', () => {
    const key = fc.stringMatching(/^[a-z/:{}'`]{1,4}$/)
    const { tree } = fc.letrec(tie => ({
      tree: fc.oneof({ maxDepth: 4 }, fc.string(), fc.integer(), tie('list'), tie('object')),
      list: fc.array(tie('tree'), { maxLength: 4 }),
      object: fc.dictionary(key, tie('tree'), { maxKeys: 4, noNullPrototype: true }),
    }))
    const pathsOf = (value: unknown, path: Path): Path[] =>
      typeof value !== 'object' || value === null
        ? [path]
        : Object.entries(value).flatMap(([name, item]) => [
            [...path, Array.isArray(value) ? Number(name) : name],
            ...pathsOf(item, [...path, Array.isArray(value) ? Number(name) : name]),
          ])
    fc.assert(
      fc.property(fc.dictionary(key, tree, { noNullPrototype: true }), value => {
        const text = JSON.stringify(value, undefined, 2)
        const inCode = locateInCode(`export default (\n${text}\n)`)
        const inJson = readJson(text).locate
        for (const path of pathsOf(value, [])) {
          expect(inCode(path), path.join()).to.equal((inJson(path) ?? 0) + 1)
        }
      }),
      { numRuns: caseCount(100, 20) },
    )
  })

  it('terminates on arbitrary text', () => {
    const pieces = fc.constantFrom(
      'export default',
      '{',
      '}',
      '[',
      ']',
      '(',
      ')',
      ',',
      ':',
      '`',
      '${',
      "'",
      '"',
      '/',
      '\\',
      'a',
      '...',
      ' ',
    )
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 30 }), words => {
        locateInCode(`export default {${words.join('')}`)(['a', 'a'])
      }),
    )
  })
})

describe('locateDefinition', () => {
  const source = [
    "export const one = defineTool({ name: 'one', title: 'One' })",
    "export const two = defineTool({ name: 'two', title: 'Two' })",
    "export const prompt = definePrompt({ name: 'one' })",
    "export const again = defineTool({ name: 'two', title: 'Again' })",
  ].join('\n')

  it('finds keys of the definition with this kind and name', () => {
    expect(locateDefinition(source, 'tool', 'one')(['title'])).to.equal(1)
    expect(locateDefinition(source, 'prompt', 'one')(['name'])).to.equal(3)
  })

  it('selects one of several definitions with the same name by its number', () => {
    expect(locateDefinition(source, 'tool', 'two', 1)(['title'])).to.equal(4)
    expect(locateDefinition(source, 'tool', 'two')(['title'])).to.equal(undefined)
  })
})
