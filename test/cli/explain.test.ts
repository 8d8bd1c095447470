// Tests `mcp-host explain`: the decision path of one caller.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import jwt from 'jsonwebtoken'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { CORE, configText, type Ended, PLUGIN, runCli, startCli, stopAll } from './in-process.ts'

after(removeFolders)
after(stopAll)

const KEY = 'a key of these tests, long enough to be one'

// The plugin verifies tokens as an auth plugin does; with `down` it cannot tell.
const CONFIG = `import { definePlugin, defineResource, defineTool, HostError } from '${CORE}'
import { authorizeRoute } from '${PLUGIN}'
import { createHmac } from 'node:crypto'
const bearer = definePlugin({
  options: { type: 'object', additionalProperties: false, properties: { down: { type: 'boolean' } } },
  provides: ['user', 'authorize'],
  setup(host, { down }) {
    host.authenticate((ctx, next) => {
      const [, token] = /^Bearer (.+)$/.exec(ctx.get('Authorization')) ?? []
      if (token === undefined) return next()
      if (down) throw new HostError('unavailable', { detail: 'the issuer does not answer' })
      const [head, body, seal] = token.split('.')
      const made = createHmac('sha256', '${KEY}').update(head + '.' + body).digest('base64url')
      if (made !== seal) throw new HostError('unauthorized', { detail: 'the signature is wrong' })
      const claims = JSON.parse(Buffer.from(body, 'base64url').toString())
      const roles = claims.roles ?? []
      ctx.state.user = { subject: claims.sub, issuer: claims.iss, scopes: claims.scope.split(' '), roles, claims }
      return next()
    })
    host.authorize(authorizeRoute(host))
  },
})
const tool = name => defineTool({ name, handler: () => name })
const toolsets = {
  admin: [tool('purge'), tool('list'), tool('wipe'), defineResource({ name: 'note', uriTemplate: 'notes://{id}', handler: () => '' })],
  open: [tool('echo')],
}
export default {
  server: { name: 'explain-test', version: '1.0.0' },
  http: { port: 0 },
  secrets: ['a secret for tests, long enough to be one'],
  tools: { limits: { 'list*': { timeout: '10s', concurrency: 2 } } },
  toolsets,
  routes: {
    '/': { toolsets: 'open', plugins: { bearer: false } },
    '/admin': { toolsets: 'admin', authorize: 'tools' },
    '/down': { toolsets: 'admin', plugins: { bearer: bearer({ down: true }) } },
    '/t/:category?': { toolsets: ':category', default: ['open'] },
    '/guarded': {
      toolsets: 'admin',
      authorize: true,
      plugins: { 'rate-limit': { address: '9/1s', tools: { 'p*': '3/1h' } } },
    },
    '/limited': {
      toolsets: 'open',
      plugins: { bearer: false, 'rate-limit': { user: '120/1m', concurrent: 4, tools: { 'e*': { limit: '5/1h', per: 'all' } } } },
    },
  },
  plugins: {
    'transport-streamable': {},
    bearer: bearer(),
    'tool-policy': {
      policies: { tools: { scope: 'mcp.tools' }, admin: { scope: ['mcp.tools', 'mcp.admin'], role: 'admin' } },
      rules: { 'purge*': 'admin', 'resource:notes://*': { policy: 'admin', mode: 'shadow' }, wipe: { scope: 'mcp.wipe' } },
    },
  },
}
`

const sign = (claims: object) =>
  jwt.sign({ iss: 'https://i.example', sub: 'ann', ...claims }, KEY, { noTimestamp: true })

let folder: string
before(async () => {
  folder = await makeFolder({ 'mcp.config.mjs': CONFIG })
})

const explain = (...args: string[]) => runCli(['explain', ...args], folder)

function expectTold({ code, stdout, stderr }: Ended, ...lines: Array<string | RegExp>) {
  expect(code, stderr).to.equal(0)
  for (const line of lines) {
    if (typeof line === 'string') expect(stdout.split('\n')).to.include(line)
    else expect(stdout).to.match(line)
  }
}

describe('mcp-host explain of an upstream server that is not connected', () => {
  it('reports that its tools are unknown, not that a tool is missing', async () => {
    const upstream = "{ servers: { far: { url: 'http://127.0.0.1:9/' } } }"
    const config = configText({
      routes: "{ '/far': { toolsets: ['far'] }, '/own': { toolsets: ['first'] } }",
      plugins: `upstream: ${upstream}`,
    })
    const cwd = await makeFolder({ 'mcp.config.mjs': config })
    const ask = (route: string) => runCli(['explain', '--route', route, '--tool', 'far_search'], cwd)
    const { stdout, stderr } = await ask('/far')
    expect(stdout, stderr).to.match(/^result .*unknown.*mcp-host accept/m)
    expect(stdout).not.to.include('-32602')
    expectTold(await ask('/own'), 'result    error -32602')
  })
})

describe('a toolset of an OpenAPI document whose `access` no plugin enforces', () => {
  const API = JSON.stringify({
    openapi: '3.1.0',
    info: { title: 'pets', version: '1' },
    servers: [{ url: 'https://api.example' }],
    paths: { '/pets': { get: { operationId: 'listPets' } }, '/owners': { get: { operationId: 'listOwners' } } },
  })
  const config = configText({
    routes: "{ '/': { toolsets: ['pets'] } }",
    plugins: "openapi: { documents: { pets: { document: './pets.json', access: 'pets.read' } } }",
  })
  const inFolder = async (...args: string[]) =>
    runCli(args, await makeFolder({ 'mcp.config.mjs': config, 'pets.json': API }))

  it('check reports how many tools are left out and how to serve them', async () => {
    const { code, stdout } = await inFolder('check')
    expect(code).to.equal(0)
    expect(stdout).to.match(/^\/ +0 tools /m)
    expect(stdout).to.match(/^The config is valid, but 2 definitions of "pets" are left out: .*enable tool-policy$/m)
    expect(stdout).to.include('reasons tools listPets: ').and.not.include('{"')
  })

  it('check names the line and the nearest name of an unknown policy and of a filter without a match', async () => {
    const yaml = `server: { name: a, version: 1.0.0 }
secrets: ['a secret for tests, long enough to be one']
routes: { /: { toolsets: [pets] } }
plugins:
  transport-streamable: {}
  tool-policy: { policies: { pets-read: { scope: pets-read } } }
  openapi:
    documents:
      pets:
        document: ./pets.json
        access: pets-rea
        exclude:
          - listPetts
`
    const { stdout } = await runCli(['check'], await makeFolder({ 'mcp.config.yaml': yaml, 'pets.json': API }))
    expect(stdout).to.match(/MH1214 .*MH2724 \S*mcp\.config\.yaml:11: .*and 1 more.*did you mean "pets-read"/s)
    expect(stdout.match(/MH2724/g)).to.have.length(1)
    expect(stdout).to.match(/MH3405 \S*mcp\.config\.yaml:13: .*exclude\[0\].*did you mean "listPets"/)
  })

  it('check reports an empty list and the entries that it requires', async () => {
    const empty = config.replace("access: 'pets.read'", 'overlay: []')
    const cwd = await makeFolder({ 'mcp.config.mjs': empty, 'pets.json': API })
    expect((await runCli(['check'], cwd)).stderr).to.match(/overlay.*with at least 1 entry/s)
  })

  it('explain names the missing plugin, not mcp-host accept', async () => {
    const { stdout } = await inFolder('explain', '--tool', 'listPets')
    expect(stdout).to.match(/^tool .*"listPets".*\nresult .*left out.*enable tool-policy/m)
    expect(stdout).not.to.include('accept')
  })
})

describe('mcp-host explain', () => {
  it('shows how to get a token, if the given one is not a JWT', async () => {
    const { stdout } = await explain('--token', 'abc', '--route', '/admin')
    expect(stdout).to.match(/^token .*refused.*mcp-host token/m)
  })

  it('rejects an empty token', async () => {
    for (const token of ['', 'Bearer ']) {
      const { code, stderr } = await explain('--token', token, '--route', '/admin')
      expect(stderr).to.include('the token of --token is empty')
      expect(code).to.equal(2)
    }
  })

  it('lists the routes, if none is selected and none is at /', async () => {
    const cwd = await makeFolder({
      'mcp.config.mjs': configText({ routes: "{ '/a': { toolsets: ['first'] }, '/b': { toolsets: ['first'] } }" }),
    })
    const { code, stderr } = await runCli(['explain'], cwd)
    expect(code).to.equal(2)
    expect(stderr).to.match(/--route.*\/a, \/b/)
  })

  it('uses the only route by default', async () => {
    const only = await makeFolder({ 'mcp.config.mjs': configText({ routes: "{ '/mcp': { toolsets: ['first'] } }" }) })
    expectTold(await runCli(['explain'], only), 'address   /mcp, route /mcp, toolsets first')
  })

  it('prints the decision path of a denied tool: claims, scopes, route, rule, missing requirement, response', async () => {
    const token = sign({ scope: 'mcp.tools openid', roles: ['admin'] })
    const ended = await explain('--token', token, '--route', '/admin', '--tool', 'purge')
    expectTold(
      ended,
      'address   /admin, route /admin, toolsets admin',
      "token     verified by the config's own plugins",
      'caller    subject ann, issuer https://i.example',
      'scopes    mcp.tools openid',
      'roles     admin',
      /^claims {4}\{.*"scope":"mcp.tools openid".*\}$/m,
      'route     authorize "tools": passed',
      /^tool {6}purge: rule "purge\*" \(policy "admin"\) needs scope "mcp.tools" and scope "mcp.admin" and role "admin": lacks scope "mcp.admin"$/m,
      /^result {4}denied: lacks scope "mcp.admin"; hidden from lists; 403 /m,
      /^ +WWW-Authenticate: Bearer error="insufficient_scope", .*scope="mcp.tools mcp.admin"$/m,
    )
    expect(ended.stdout + ended.stderr).not.to.contain(token)
  })

  it('prints the limits of plugins for the route and the tool', async () => {
    expectTold(
      await explain('--route', '/limited', '--tool', 'echo'),
      /^plugins {3}rate-limit: user: .*120.*1m/m,
      /^ {10}rate-limit: concurrent: .* 4 /m,
      /^ {10}rate-limit: tools "e\*": .* 5 .*1h/m,
      'result    allowed, listed',
    )
  })

  it('prints the limits of the tool in the config', async () => {
    const told = await explain(
      '--token',
      sign({ scope: 'mcp.tools', roles: [] }),
      '--route',
      '/admin',
      '--tool',
      'list',
    )
    expectTold(
      told,
      /limits: .*10000 ms.*\(tools.limits "list\*"\)$/m,
      /limits: .* 2 .*\(tools.limits "list\*"\)$/m,
      'result    allowed, listed',
    )
  })

  it('prints the limits to a denied caller too', async () => {
    const limited = ['--route', '/guarded', '--tool', 'purge']
    for (const more of [[], ['--token', 'a.b.c']])
      expectTold(
        await explain(...limited, ...more),
        /^plugins {3}rate-limit: address: .* 9 .*1s/m,
        /^ {10}rate-limit: tools "p\*": .* 3 .*1h/m,
        /^result {4}401 /m,
      )
  })

  it('names the scope of the route and of the tool in the response', async () => {
    const told = await explain('--token', sign({ scope: 'mcp.tools' }), '--route', '/admin', '--tool', 'wipe')
    expectTold(told, /^ +WWW-Authenticate: Bearer error="insufficient_scope", .*scope="mcp.tools mcp.wipe"$/m)
  })

  it('prints allowed items, and without a tool every item with its decision', async () => {
    const token = sign({ scope: 'mcp.tools mcp.admin', roles: ['admin'] })
    expectTold(await explain('--token', token, '--route', '/admin', '--tool', 'purge'), 'result    allowed, listed')
    expectTold(
      await explain('--token', sign({ scope: 'mcp.tools' }), '--route', '/admin'),
      'tool      purge: hidden, denied: lacks scope "mcp.admin", role "admin"',
      'tool      list: allowed',
      'resource  notes://{id}: allowed',
    )
  })

  it('ends at the route: 401 without a token, 403 with a token that lacks a scope', async () => {
    expectTold(
      await explain('--route', '/admin', '--tool', 'purge'),
      'caller    anonymous',
      'route     authorize "tools": no token',
      /^result {4}401 .*\n +WWW-Authenticate: Bearer scope="mcp.tools"$/m,
    )
    expectTold(await explain('--token', sign({ scope: 'x' }), '--route', '/admin'), /^result {4}403 /m)
  })

  it('reports a rejected token, the reason, and its claims', async () => {
    const ended = await explain('--token', `${sign({ scope: 'mcp.tools' })}x`, '--route', '/admin')
    expectTold(ended, /^token {5}refused: .*signature/m, /^claims {4}\{.*"sub":"ann"/m, /^result {4}401 /m)
  })

  it('reports a token that cannot be verified now, and continues with its claims', async () => {
    const ended = await explain('--token', sign({ scope: 'mcp.tools' }), '--route', '/down', '--tool', 'purge')
    expectTold(
      ended,
      /^token {5}NOT VERIFIED: .*issuer/m,
      'scopes    mcp.tools',
      /^result {4}denied: lacks scope "mcp.admin", role "admin"/m,
    )
  })

  it('does not reject a token of the running host, whose keys are unknown without `secrets`', async () => {
    const text = CONFIG.replace(/ {2}secrets: .*\n/, '').replace(
      "'transport-streamable': {},",
      "'transport-streamable': {}, 'dev-auth-server': {},",
    )
    const folder = await makeFolder({ 'mcp.config.mjs': text })
    const token = `${sign({ scope: 'mcp.tools' })}x`
    const ended = await runCli(['explain', '--token', token, '--route', '/admin', '--tool', 'purge'], folder)
    expectTold(ended, /^token {5}NOT VERIFIED: without `secrets`/m, 'scopes    mcp.tools')
  })

  it('reports that a token is ignored if no plugin reads it', async () => {
    const ended = await explain('--token', 'anything', '--tool', 'echo')
    expectTold(ended, /^token {5}ignored: /m, 'caller    anonymous', 'result    allowed, listed')
  })

  it('prints the decision of a rule in shadow mode, and finds a resource by its URI', async () => {
    const ended = await explain('--token', sign({ scope: 'mcp.tools' }), '--route', '/admin', '--resource', 'notes://1')
    expectTold(
      ended,
      /^resource {2}notes:\/\/\{id\}: rule .*: lacks .* \(shadow: not enforced\)$/m,
      'result    allowed, listed',
    )
  })

  it('reads the token from a file or stdin, so that process lists do not contain it', async () => {
    await writeFile(join(folder, 'token.txt'), `${sign({ scope: 'mcp.tools' })}\n`)
    expectTold(await explain('--token', '@token.txt', '--route', '/admin'), 'scopes    mcp.tools')
    const { child, ended } = startCli(['explain', '--token', '-', '--route', '/admin'], folder)
    child.stdin.end(sign({ scope: 'mcp.tools' }))
    expectTold(await ended, 'scopes    mcp.tools')
  })

  it('prints claims of a token without control characters and line breaks', async () => {
    const ended = await explain(
      '--token',
      sign({ scope: 'mcp.tools', sub: 'ann\u001b[2J\nresult    allowed\u202e\u200b' }),
      '--route',
      '/admin',
    )
    expectTold(ended, 'caller    subject ann\\u001b[2J\\u000aresult    allowed\\u202e\\u200b, issuer https://i.example')
    expect(ended.stdout.replaceAll('\n', '')).not.to.match(/[\p{Cc}\p{Cf}]/u)
  })

  it('accepts URLs with parameters, and reports an unknown tool', async () => {
    expectTold(
      await explain('--route', '/t/admin', '--tool', 'purg'),
      'address   /t/admin, route /t/:category?, toolsets admin',
      /^tool {6}.*"purg".*"purge"/m,
    )
    expectTold(await explain('--route', '/t', '--tool', 'echo'), /toolsets open$/m, 'result    allowed, listed')
  })

  it('explains a URL of the route if its path is given', async () => {
    expectTold(await explain('--route', '/t/:category?'), 'address   /t, route /t/:category?, toolsets open')
  })

  it('prints that configureSession may change the items', async () => {
    const hooked = CONFIG.replace('  toolsets,\n', '  toolsets,\n  configureSession() {},\n')
    const hookedFolder = await makeFolder({ 'mcp.config.mjs': hooked })
    const session = /^session {3}configureSession can change/m
    expectTold(await runCli(['explain'], hookedFolder), session)
    expectTold(await runCli(['explain', '--tool', 'purge'], hookedFolder), session)
    expect((await explain()).stdout).not.to.match(session)
  })

  it('exits 2 for a URL that is not served and for a token that cannot be read', async () => {
    const [nowhere, unread] = [await explain('--route', '/no'), await explain('--token', '@none.txt')]
    expect([nowhere.code, nowhere.stdout]).to.deep.equal([2, ''])
    expect(nowhere.stderr).to.match(/\/no\b.*\/, \/admin, \/down, \/t\/:category\?/)
    expect([unread.code, unread.stdout]).to.deep.equal([2, ''])
    expect(unread.stderr).to.match(/^mcp-host: error \w+: --token.*ENOENT/)
  })
})
