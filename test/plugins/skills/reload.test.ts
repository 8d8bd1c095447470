// Skill reload: atomic updates, client notifications and consistent lists and reads.
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { removeFolders } from '../../config/folder.ts'
import { type ReloadingHost, readNotifications, startReloading, stopReloading } from '../../support/reloading-host.ts'
import { repeatDuring } from '../../support/repeat-during.ts'
import { modern, type RpcMessage } from '../../support/rpc.ts'
import { openSession } from '../../support/session-client.ts'
import { caseCount } from '../../support/thorough.ts'
import { bytesIn, digestOf, skill, urisOf } from './serve-skills.ts'

const CONFIG = `import { defineConfig } from HERE
export default defineConfig({
  server: { name: 'reloaded', version: '1.0.0' },
  http: { port: 0 },
  secrets: ['a secret for tests, long enough to be one'],
  toolsets: { none: [] },
  routes: { '/': { toolsets: 'none' } },
  plugins: { 'transport-streamable': {}, skills: { folder: './skills' } },
})
`
const CHANGED = 'notifications/resources/list_changed'
const UPDATED = 'notifications/resources/updated'

describe('Skills reload', () => {
  let host: ReloadingHost
  beforeEach(async () => {
    host = await startReloading({
      'mcp.config.ts': CONFIG,
      'skills/one/SKILL.md': skill('one'),
      'skills/one/a.md': 'first',
      'skills/two/SKILL.md': skill('two'),
    })
  })
  afterEach(stopReloading)
  after(removeFolders)

  const result = async (method: string, params: object = {}): Promise<RpcMessage> =>
    (await modern(host.url, method, { ...params })).message.result
  const listed = async () => urisOf((await result('skills/list')).skills)
  const read = async (uri: string) => bytesIn(await result('resources/read', { uri }))
  async function write(name: string, content: string | Uint8Array) {
    await mkdir(dirname(join(host.folder, name)), { recursive: true })
    await writeFile(join(host.folder, name), content)
  }

  /** Every file is what its manifest says. */
  async function expectSound() {
    const { skills } = await result('skills/list')
    for (const { uri, digest, size } of skills.flatMap((one: RpcMessage) => one.resources)) {
      const bytes = await read(uri)
      expect([digestOf(bytes), bytes.length], uri).to.deep.equal([digest, size])
    }
  }

  it('serves the previous version until the reload and the new version afterwards', async () => {
    await write('skills/one/a.md', 'second!')
    await write('skills/three/SKILL.md', skill('three'))
    await rm(join(host.folder, 'skills/two'), { recursive: true })
    expect(await listed()).to.deep.equal(['skill://one/SKILL.md', 'skill://two/SKILL.md'])
    expect(String(await read('skill://one/a.md'))).to.equal('first')
    await expectSound()
    expect((await host.reload()).taken).to.deep.equal(['plugins.skills'])
    expect(await listed()).to.deep.equal(['skill://one/SKILL.md', 'skill://three/SKILL.md'])
    expect(String(await read('skill://one/a.md'))).to.equal('second!')
    await expectSound()
    const gone = await modern(host.url, 'resources/read', { uri: 'skill://two/SKILL.md' })
    expect(gone.message.error.code).to.equal(-32602)
    expect((await host.reload()).taken).to.deep.equal([])
  })

  it('notifies list and resource subscribers once', async () => {
    const session = await openSession(host.url)
    const stream = await session.get()
    for (const uri of ['skill://one/a.md', 'skill://one/SKILL.md'])
      await session.request('resources/subscribe', { uri })
    await write('skills/one/a.md', 'SAME!')
    expect((await host.reload()).told).to.equal(1)
    const [first] = await readNotifications(host.host, stream)
    expect(first).to.deep.equal([UPDATED, CHANGED])
    await write('skills/one/a.md', 'SAME!')
    expect((await host.reload()).told).to.equal(0)
    expect(await readNotifications(host.host, stream)).to.deep.equal([[]])
    await write('skills/one/b/new.md', 'new')
    expect((await host.reload()).told).to.equal(1)
    expect(await readNotifications(host.host, stream)).to.deep.equal([[CHANGED]])
    stream.drop()
  })

  it('fails with the line of an invalid file and keeps the previous version', async () => {
    await write('skills/one/a.md', 'second')
    await write('skills/two/SKILL.md', '---\nname: other\ndescription: x\n---\n')
    const [outcome] = await Promise.allSettled([host.reload()])
    expect(outcome.status).to.equal('rejected')
    expect(String((outcome as PromiseRejectedResult).reason)).to.contain('skills/two/SKILL.md:2: `name` is "other"')
    expect(String(await read('skill://one/a.md'))).to.equal('first')
    await expectSound()
    await write('skills/two/SKILL.md', skill('two'))
    await host.reload()
    expect(String(await read('skill://one/a.md'))).to.equal('second')
  })

  it('accepts another folder, also with the same files', async () => {
    await write('skills/one/big.bin', new Uint8Array(2_000_000))
    await host.reload()
    await rename(join(host.folder, 'skills'), join(host.folder, 'moved'))
    await host.edit('mcp.config.ts', './skills', './moved')
    const { taken, restart } = await host.reload()
    expect([taken, restart]).to.deep.equal([['plugins.skills'], []])
    await expectSound()
  })

  it('refuses large files that changed on disk', async () => {
    await write('skills/one/big.bin', new Uint8Array(2_000_000))
    await host.reload()
    const uri = 'skill://one/big.bin'
    for (const content of [new Uint8Array(2_000_000).fill(1), new Uint8Array(1_999_999), new Uint8Array(3_000_000)]) {
      await write('skills/one/big.bin', content)
      const { message } = await modern(host.url, 'resources/read', { uri })
      expect(message.error?.code).to.equal(-32603)
      expect(message.error.message).to.contain('has changed since it was listed')
    }
    await host.reload()
    expect((await read(uri)).length).to.equal(3_000_000)
    await expectSound()
  })

  const RELOADS = caseCount(12, 2)

  it('keeps files and digests consistent during concurrent calls and reloads', async () => {
    let checked = 0
    const mixed: string[] = []
    async function client() {
      const [{ skill: one }, bytes] = await Promise.all([
        result('skills/get', { uri: 'skill://one/SKILL.md' }),
        read('skill://one/a.md'),
      ])
      const again = (await result('skills/get', { uri: 'skill://one/SKILL.md' })).skill
      const digests = [one, again].map(
        ({ resources }: RpcMessage) => resources.find(({ uri }: RpcMessage) => uri === 'skill://one/a.md').digest,
      )
      // Between the same manifest before and after, nothing else can have been served.
      if (digests[0] === digests[1] && digestOf(bytes) !== digests[0]) mixed.push(String(bytes))
      checked++
    }
    const reloadOften = async () => {
      for (let version = 0; version < RELOADS; version++) {
        await write('skills/one/a.md', `version ${version}`)
        await write('skills/one/SKILL.md', skill('one', `metadata:\n  version: "${version}"\n`))
        await host.reload()
        await expectSound()
      }
    }
    await repeatDuring(() => Promise.all([client(), client()]), reloadOften)
    expect(mixed).to.deep.equal([])
    expect(checked).to.be.above(0)
  })
})
