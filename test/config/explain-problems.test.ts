// Tests the messages of config errors: found value, expected value and suggestion.
import { expect } from 'chai'
import { formatProblems } from '../../core/config/check-config.ts'
import { validateValue } from '../../core/config/validate-value.ts'
import { formatPath } from '../../core/http/errors.ts'
import { openapi } from '../../plugins/openapi/index.ts'
import { upstream } from '../../plugins/upstream/index.ts'
import { checkWith } from './checked.ts'

/** The only problem that a change makes, as `path: found; expected`. */
function only(changes: object): string {
  const problems = checkWith(changes)
  expect(problems, formatProblems(problems)).to.have.length(1)
  return problems.map(({ path, found, expected }) => `${path}: found ${found}; expected ${expected}`).join()
}

describe('Config error messages', () => {
  const wrong: [string, object, RegExp][] = [
    ['an invalid port', { http: { port: -1.5 } }, /^http\.port: .*-1\.5.*0 to 65535$/],
    ['a negative duration', { http: { requestTimeout: -1 } }, /^http\.requestTimeout.*-1.*30s/],
    ['alternatives, in one problem', { tools: { callTimeout: 'of' } }, /^tools\.callTimeout.*"of".*30s/],
    [
      'a publicUrl of another scheme',
      { http: { publicUrl: 'ftp://x' } },
      /^http\.publicUrl.*"ftp:\/\/x".*URL.*'https:\/\/mcp\.acme\.example'$/,
    ],
    [
      'a publicUrl that no URL parser takes',
      { http: { publicUrl: 'http://x:99999' } },
      /^http\.publicUrl.*"http:\/\/x:99999".*URL.*'https:\/\/mcp\.acme\.example'$/,
    ],
    ['any plugin that is neither', { plugins: { other: true } }, /^plugins\.other: .*true.*false/],
    ['no routes', { routes: {} }, /^routes: .*\{"\/":\{"toolsets":\["clock"\]\}\}$/],
    ['an empty rule', { routes: { '/': { toolsets: 'a', authorize: {} } } }, /^routes\['\/'\]\.authorize.*1/],
    ['authorize: false', { routes: { '/': { toolsets: 'a', authorize: false } } }, /^routes\['\/'\]\.authorize.*1/],
    ['a hook that is no function', { configureSession: 'x' }, /^configureSession.*"x"/],
    ['a function where a value belongs', { stateless: () => true }, /^stateless: .*function.*true or false$/],
    ['text that is very long', { stateless: 'x'.repeat(500) }, /^stateless: .*"x{59}…".*true or false$/],
  ]
  for (const [what, changes, text] of wrong) {
    it(`explain ${what}`, () => {
      expect(only(changes)).to.match(text)
    })
  }

  it('state the minimum length of a text', () => {
    const [finding] = validateValue('short', { type: 'string', minLength: 20 }, [])
    expect(finding?.expected).to.equal('a string of at least 20 characters')
  })

  it('report an unknown key in the anyOf branch that matches, also behind nested $refs', () => {
    const branches = {
      type: 'object',
      additionalProperties: { anyOf: [{ type: 'string' }, { $ref: '#/$defs/node' }, { $ref: '#/$defs/detailed' }] },
      $defs: {
        node: {
          type: 'object',
          additionalProperties: false,
          properties: { name: { type: 'string' }, all: { type: 'array', items: { $ref: '#/$defs/node' } } },
        },
        detailed: {
          type: 'object',
          additionalProperties: false,
          required: ['node'],
          properties: { node: { anyOf: [{ type: 'string' }, { $ref: '#/$defs/node' }] }, mode: { enum: ['a', 'b'] } },
        },
      },
    }
    const told = (value: unknown) =>
      validateValue({ x: value }, branches, []).map(({ path, found, expected, suggestion }) => {
        return `${formatPath(path)}: ${found}; ${expected}${suggestion === undefined ? '' : `; ${suggestion}?`}`
      })
    expect(told({ all: [{ all: [{ nam: 'x' }] }] })).to.deep.equal([
      'x.all[0].all[0].nam: a string; all or name; name?',
    ])
    expect(told({ node: { all: [3] }, mod: 'a' })).to.deep.equal([
      'x.mod: a string; mode or node; mode?',
      'x.node.all[0]: 3; an object',
    ])
    expect(told({ mode: 'a' })).to.deep.equal(['x.node: nothing; a string or an object'])
    expect(told({ other: 1 })).to.deep.equal(['x: an object; a string or an object'])
  })

  it('name the issuer that a client secret requires, in each plugin with client credentials', () => {
    const auth = { kind: 'client-credentials', clientId: 'host', clientSecret: 'a-secret' }
    const told = ({ plugin }: { plugin: { options?: object } }, options: (auth: object) => object) =>
      [auth, { ...auth, issuer: 'https://idp.example' }, { kind: auth.kind, clientId: 'host', privateKey: 'k' }].map(
        given =>
          validateValue(options(given), plugin.options ?? {}, []).map(
            ({ kind, path }) => `${formatPath(path)}: ${kind}`,
          ),
      )
    expect(told(upstream, given => ({ servers: { a: { url: 'https://a.example/mcp', auth: given } } }))).to.deep.equal([
      ['servers.a.auth.issuer: missing'],
      [],
      [],
    ])
    expect(told(openapi, given => ({ documents: { a: { document: 'a.json', auth: given } } }))).to.deep.equal([
      ['documents.a.auth.issuer: missing'],
      [],
      [],
    ])
  })

  const suggestions: [object, string][] = [
    [{ pluggins: {} }, 'plugins'],
    [{ runsession: () => {} }, 'runSession'],
    [{ plugins: { health: { path: '/', level: 'fulll' } } }, 'full'],
    [{ tools: { callTimeout: 'OFF' } }, 'off'],
  ]
  for (const [changes, suggestion] of suggestions) {
    it(`suggest ${suggestion} for ${Object.keys(changes)}: ${JSON.stringify(changes)}`, () => {
      expect(checkWith(changes).map(problem => problem.suggestion)).to.deep.equal([suggestion])
    })
  }
})
