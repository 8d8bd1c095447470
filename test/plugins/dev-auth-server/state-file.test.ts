// Tests the state file of the development authorization server across restarts, and its file permissions.
import { chmod, chown, lstat, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { StartError } from '../../../core/plugin.ts'
import { openKeptStore } from '../../../plugins/auth-bridge/development/kept-store.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { rejectionOf } from '../../fixtures/rejection-of.ts'
import { HandClient } from '../../support/form-browser.ts'
import { freePort } from '../../support/free-port.ts'
import { modern } from '../../support/rpc.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'

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

describe('dev-auth-server: keepIn', () => {
  it('keeps keys, clients, grants and tokens across a restart', async () => {
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
      ).to.deep.equal(['Development authorization server enabled: anyone who can reach this host can sign in.'])
    }
    await second.host.close({ grace: 0 })
  })

  for (const [what, text] of [
    ['not JSON', '{"format":2,"secret":"hunter2'],
    ['JSON of another kind', '{"format":2,"secret":"hunter2","entries":[]}'],
    ['empty', ''],
  ] as const) {
    it(`logs that the file is ${what}, and starts with new state`, async () => {
      const folder = await makeFolder({})
      await mkdir(join(folder, 'kept'))
      await writeFile(join(folder, 'kept/auth.json'), text)
      await chmod(join(folder, 'kept/auth.json'), 0o644)
      const { issuer, log, host } = await start(folder, await freePort())
      expect(await keysOf(issuer))
        .to.have.property('keys')
        .with.lengthOf(1)
      const told = log.filter(({ message }) => message?.startsWith('cannot read the stored logins'))
      expect(told).to.have.lengthOf(1)
      expect(JSON.stringify(told)).not.to.include('hunter2')
      await host.close({ grace: 0 })
      const kept = join(folder, 'kept/auth.json')
      expect((await stat(kept)).mode & 0o777).to.equal(0o600)
      expect(JSON.parse(await readFile(kept, 'utf8'))).to.include({ format: 3 })
    })
  }

  for (const [what, file, place, why] of [
    ['a file that others may write', 0o622, 0o700, /auth\.json can be written by other users \(mode 622\).*delete it$/],
    ['a folder that everybody may write', 0o600, 0o707, /kept can be written by every user \(mode 707\).*chmod o-w/],
  ] as const) {
    it(`fails startup with ${what}`, async () => {
      const folder = await makeFolder({ 'kept/auth.json': '' })
      await chmod(join(folder, 'kept/auth.json'), file)
      await chmod(join(folder, 'kept'), place)
      const error = await rejectionOf(start(folder, await freePort()))
      expect(error).to.be.instanceOf(StartError)
      expect((error as Error).message).to.match(why)
    })
  }

  it('fails startup with a symbolic link or a file of another user', async () => {
    const folder = await makeFolder({ 'theirs.json': '' })
    await symlink('theirs.json', join(folder, 'link.json'))
    const port = await freePort()
    expect(String(await rejectionOf(start(folder, port, 'link.json')))).to.match(/link\.json/)
    if (process.getuid?.() !== 0) return
    await chown(join(folder, 'theirs.json'), 65_534, 65_534)
    expect(String(await rejectionOf(start(folder, port, 'theirs.json')))).to.match(/65534/)
  })

  it('overwrites no existing file, and removes read permission of others', async () => {
    const folder = await makeFolder({ 'precious.txt': 'mine' })
    const file = join(folder, 'auth.json')
    await symlink('precious.txt', `${file}.${process.pid}.new`)
    const warned: unknown[] = []
    const log = { ...console, warn: (...given: unknown[]) => void warned.push(given), child: () => log }
    const first = await openKeptStore(file, log)
    expect(await readFile(join(folder, 'precious.txt'), 'utf8')).to.equal('mine')
    expect((await lstat(file)).isFile()).to.equal(true)
    await chmod(file, 0o644)
    expect((await openKeptStore(file, log)).keys('test')).to.deep.equal(first.keys('test'))
    expect((await stat(file)).mode & 0o777).to.equal(0o600)
    expect(warned).to.deep.equal([])
  })

  it('keeps nothing by default, and uses the mcp-host dev location if keepIn is not set', async () => {
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
