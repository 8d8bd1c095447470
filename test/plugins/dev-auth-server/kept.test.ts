// What the authorization server for development keeps over a restart: in a file for its owner alone, whole or not at all.
import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { freePort } from '../../support/free-port.ts'
import { modern } from '../../support/rpc.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { HandClient } from './browser.ts'

after(async () => {
  await stopHosts()
  await removeFolders()
})

async function start(folder: string, port: number, keepIn: string | undefined = 'kept/auth.json') {
  const issuer = `http://127.0.0.1:${port}/dev-auth`
  const started = await startHost(
    {
      http: { port },
      toolsets: { all: [defineTool({ name: 'whoami', handler: (_, { user }) => user?.subject })] },
      routes: { '/': { toolsets: ['all'], authorize: true } },
      plugins: {
        'transport-streamable': {},
        'dev-auth-server': { users: [{ id: 'ada' }], scopes: ['tools'], ...(keepIn !== undefined && { keepIn }) },
        'auth-jwt': { authority: issuer },
        'resource-metadata': { authorizationServers: [issuer], scopesSupported: ['tools'] },
      },
    },
    folder,
  )
  return { ...started, issuer }
}

const keysOf = async (issuer: string) => (await (await fetch(`${issuer}/jwks`)).json()) as unknown

describe('dev-auth-server with keepIn', function () {
  this.timeout(60_000)

  it('knows its keys, clients, grants and tokens after a restart, and has not warned of itself', async () => {
    const folder = await makeFolder({})
    const port = await freePort()
    const first = await start(folder, port)
    const client = await new HandClient(first.issuer).start()
    const tokens = await client.signIn('ada', { resource: first.url, scope: 'tools offline_access' })
    const whoami = (url: string, token: string) =>
      modern(url, 'tools/call', { name: 'whoami' }, { headers: { Authorization: `Bearer ${token}` } })
    expect((await whoami(first.url, tokens.access_token)).status).to.equal(200)
    const keys = await keysOf(first.issuer)
    await first.host.close({ grace: 0 })

    const file = join(folder, 'kept/auth.json')
    expect((await stat(file)).mode & 0o777).to.equal(0o600)
    expect((await stat(join(folder, 'kept'))).mode & 0o777).to.equal(0o700)
    expect((await readdir(join(folder, 'kept'))).sort()).to.deep.equal(['.gitignore', 'auth.json'])

    const second = await start(folder, port)
    expect(await keysOf(second.issuer)).to.deep.equal(keys)
    expect((await whoami(second.url, tokens.access_token)).message.result.content[0].text).to.equal('ada')
    const renewed = await client.token({ grant_type: 'refresh_token', refresh_token: tokens.refresh_token ?? '' })
    expect((await whoami(second.url, renewed.access_token)).status).to.equal(200)
    const again = await client.signIn('ada', { resource: second.url, scope: 'tools' })
    expect(again.error).to.equal(undefined)
    for (const { log } of [first, second]) {
      expect(
        log.filter(({ level }) => level === 'warn' || level === 'error').map(({ message }) => message),
      ).to.deep.equal(['an authorization server for development is on: whoever reaches it may sign in'])
    }
    await second.host.close({ grace: 0 })
  })

  for (const [what, text] of [
    ['no JSON', '{"format":1,"jwks":{"keys":[{"kty":"EC","d":"hunter2"'],
    ['JSON of another kind', '{"format":1,"jwks":{"keys":[]},"cookieKeys":["x"],"entries":[]}'],
    ['empty', ''],
  ] as const) {
    it(`says that a file is ${what}, and begins anew`, async () => {
      const folder = await makeFolder({})
      await mkdir(join(folder, 'kept'))
      await writeFile(join(folder, 'kept/auth.json'), text)
      await chmod(join(folder, 'kept/auth.json'), 0o644)
      const { issuer, log, host } = await start(folder, await freePort())
      expect(await keysOf(issuer))
        .to.have.property('keys')
        .with.lengthOf(1)
      const told = log.filter(({ message }) => message?.startsWith('what was kept cannot be read'))
      expect(told).to.have.lengthOf(1)
      expect(JSON.stringify(told)).not.to.include('hunter2')
      await host.close({ grace: 0 })
      const kept = join(folder, 'kept/auth.json')
      expect((await stat(kept)).mode & 0o777).to.equal(0o600)
      expect(JSON.parse(await readFile(kept, 'utf8'))).to.include({ format: 1 })
    })
  }

  it('keeps nothing where nobody says where, and what mcp-host dev says counts where no option does', async () => {
    const folder = await makeFolder({})
    const port = await freePort()
    async function runWithoutOptions() {
      const { url, host } = await startHost(
        {
          http: { port },
          toolsets: { all: [] },
          routes: { '/': { toolsets: ['all'] } },
          plugins: { 'transport-streamable': {}, 'dev-auth-server': {} },
        },
        folder,
      )
      await keysOf(`${url}/dev-auth`)
      await host.close({ grace: 0 })
    }
    await runWithoutOptions()
    expect(await readdir(folder)).to.deep.equal(['package.json'])
    process.env['MCP_HOST_DEV_FOLDER'] = join(folder, '.mcp-host')
    try {
      await runWithoutOptions()
    } finally {
      delete process.env['MCP_HOST_DEV_FOLDER']
    }
    expect(await readdir(join(folder, '.mcp-host'))).to.include('dev-auth-server.json')
  })
})
