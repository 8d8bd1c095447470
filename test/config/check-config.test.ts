// Tests config validation: all problems in one report, with line, found value and expected value.
import { expect } from 'chai'
import { assertNoProblems, checkConfig, checkValue, formatProblems } from '../../core/config/check-config.ts'
import { type LoadedConfig, loadConfig } from '../../core/config/load-config.ts'
import { StartError } from '../../core/http/errors.ts'
import { defineTool } from '../../core/mcp/definitions/define.ts'
import { audit, check, checkWith, SCHEMA, VALID } from './checked.ts'
import { makeFolder, removeFolders } from './folder.ts'

const BROKEN = {
  yaml: `server:
  name: a
  versoin: '1'
toolsets:
  a: ./a.ts
routes:
  /:
    toolsets: [a, 7]
  admin:
    toolsets: a
plugins:
  health:
    pth: /x
http:
  port: 70000
`,
  json: `{
  "server": { "name": "a",
    "versoin": "1" },
  "toolsets": { "a": "./a.ts" },
  "routes": {
    "/": { "toolsets": ["a",
      7] },
    "admin": { "toolsets": "a" } },
  "plugins": {
    "health": {
      "pth": "/x" } },
  "http": {
    "port": 70000
  }
}`,
  ts: `import { tool } from './tool'

export default {
  server: {
    name: 'a',
    versoin: '1',
  },
  toolsets: { a: './a.ts' },
  routes: {
    // '/' is: { toolsets: [] }
    '/': { toolsets: ['a', 7 as never] },
    admin: { toolsets: 'a', plugins: { health: tool } },
  },
  plugins: {
    health: {
      pth: \`/x\${'}'}\`,
    },
  },
  http: { port: 70_000 },
}
`,
}

describe('checkConfig', () => {
  after(removeFolders)

  const lines: Record<keyof typeof BROKEN, number[]> = {
    yaml: [3, 8, 9, 13, 15],
    json: [3, 7, 8, 11, 13],
    ts: [6, 11, 12, 16, 19],
  }
  for (const format of ['yaml', 'json', 'ts'] as const) {
    it(`reports all problems of a ${format} config in file order, with lines`, async () => {
      const cwd = await makeFolder({ [`mcp.config.${format}`]: BROKEN[format], 'tool.ts': 'export const tool = {}' })
      const problems = checkConfig(await loadConfig({ cwd }), SCHEMA)
      expect(problems.map(({ path }) => path)).to.deep.equal([
        'server.versoin',
        "routes['/'].toolsets[1]",
        'routes.admin',
        'plugins.health.pth',
        'http.port',
      ])
      expect(problems.map(({ line }) => line)).to.deep.equal(lines[format])
      expect(problems.map(({ suggestion }) => suggestion)).to.deep.equal([
        'version',
        undefined,
        undefined,
        'path',
        undefined,
      ])
    })
  }

  it('formats one block per problem: location, kind, found and expected value', async () => {
    const problems = checkWith({ http: { prot: 3001 }, stateless: 'no' }).map(problem => ({ ...problem, line: 14 }))
    expect(formatProblems(problems)).to.match(
      /^\/etc\/mcp\.config\.ts:14 {2}http\.prot\n {2}.*"port"\?\n {2}.*allowedHosts.*writeTimeout\n\n\/etc\/mcp\.config\.ts:14 {2}stateless\n.*\n {2}.*"no".*true or false$/,
    )
  })

  it('reports problems only in the matching branch of anyOf', () => {
    const problems = checkWith({ routes: { '/': { toolsets: ['a', ''], authorize: { scope: ['x', 3], rol: 'y' } } } })
    expect(problems.map(({ path }) => path)).to.have.members([
      "routes['/'].toolsets[1]",
      "routes['/'].authorize.rol",
      "routes['/'].authorize.scope[1]",
    ])
  })

  it('reports the same error on two routes separately', () => {
    const problems = checkWith({ routes: { '/': { toolsets: 1 }, '/a': { toolsets: [1] } } })
    expect(problems.map(({ path }) => path)).to.have.members(["routes['/'].toolsets", "routes['/a'].toolsets[0]"])
  })

  it('requires the whole config to be an object', () => {
    expect(check(null)).to.deep.include({
      kind: 'wrong value',
      file: '/etc/mcp.config.ts',
      path: '(config)',
      found: 'null',
      expected: 'an object',
    })
  })

  it('never prints a secret', () => {
    const problems = checkWith({
      secrets: 'hunter2',
      http: { apiKey: 'hunter2', token: 12345 },
      plugins: { health: { path: '/', redisPassword: 'hunter2' } },
      tools: { fetchTimeout: 'redis://me:hunter2@db:6379' },
    })
    const text = formatProblems(problems)
    expect(problems).to.have.length(5)
    expect(text).not.to.match(/hunter2|12345/)
    expect(text).to.contain('secrets\n  MH1013 wrong value\n  found a string (not shown); expected a list')
    expect(text).to.contain('found "redis://…@…"')
    expect(formatProblems(checkWith({ secrets: [{ value: 'hunter2' }, ''] }))).not.to.contain('hunter2')
  })

  it('treats undefined keys as absent and accepts undefined secrets', () => {
    const problems = checkWith({
      http: undefined,
      tool: undefined,
      secrets: [undefined, 'a'],
      plugins: { x: undefined },
    })
    expect(problems).to.deep.equal([])
    const [problem] = checkWith({ server: { name: 'a', version: undefined } })
    expect(problem).to.include({ path: 'server.version', kind: 'missing', found: 'nothing' })
  })

  it('accepts objects without a prototype', () => {
    const bare = (value: object): object => Object.assign(Object.create(null), value)
    expect(check(bare({ ...VALID, http: bare({ port: 1 }) }))).to.deep.equal([])
    expect(check(bare({ ...VALID, http: bare({ prot: 1 }) }))).to.have.length(1)
  })

  it('reports a key named __proto__', () => {
    expect(check({ ...VALID, http: JSON.parse('{"__proto__": {"port": "x"}}') }).map(({ path }) => path)).to.deep.equal(
      ['http.__proto__'],
    )
  })

  it('validates a configured plugin against its own options under any key', () => {
    expect(checkWith({ plugins: { audit: audit({ file: 'x' }), health: audit({ file: 'x' }) } })).to.deep.equal([])
    const problems = checkWith({
      plugins: { audit: audit({ fil: 'x' } as never) },
      routes: { '/': { toolsets: 'a', plugins: { audit: audit({ keep: 'x' } as never) } } },
    })
    expect(problems.map(({ path, kind }) => `${path} ${kind}`)).to.have.members([
      'plugins.audit.fil unknown option',
      "routes['/'].plugins.audit.keep wrong value",
    ])
  })

  it('reports a plugin factory that is not called, globally and per route', () => {
    const routes = { '/': { toolsets: 'a', plugins: { log: audit } } }
    for (const config of [
      { ...VALID, plugins: { log: audit } },
      { ...VALID, routes },
    ]) {
      const [problem, second] = check(config as never)
      expect(problem).to.include({
        kind: 'wrong value',
      })
      expect(second).to.equal(undefined)
      expect(problem?.path).to.match(/plugins\.log$/)
    }
  })

  it('validates options of a plugin loaded by name and reports their line', () => {
    const loaded: LoadedConfig = {
      file: '/etc/x.yaml',
      config: VALID,
      locate: path => (path.length === 2 ? 9 : undefined),
    }
    const [problem] = checkValue(loaded, ['plugins', './audit.ts'], { file: 1 }, audit.plugin.options)
    expect(problem).to.include({ line: 9, path: "plugins['./audit.ts'].file", found: '1', expected: 'a string' })
  })

  it('skips definitions in toolsets', () => {
    const tool = defineTool({ name: 't', handler: () => 'x' })
    const cyclic: Record<string, unknown> = { name: 'u', port: undefined }
    cyclic['self'] = cyclic
    expect(checkWith({ toolsets: { a: [tool, './b.ts'], b: tool, c: cyclic } })).to.deep.equal([])
  })
})

describe('assertNoProblems', () => {
  it('does not throw without problems', () => {
    assertNoProblems([])
  })

  it('throws a StartError with exit code 2 that lists every problem', () => {
    const problems = checkWith({ stateless: 1, http: { port: 'x' } })
    expect(() => assertNoProblems(problems))
      .to.throw(StartError, `The config has 2 problems.\n\n${formatProblems(problems)}`)
      .with.property('exitCode', 2)
  })
})
