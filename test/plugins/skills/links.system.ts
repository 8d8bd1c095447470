// Symbolic links in a skills folder: policy rules apply to every name, and link races never serve outside files.
import { type ChildProcess, spawn } from 'node:child_process'
import { link, mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { readFile } from '../../../plugins/skills/read-file.ts'
import { readSkills } from '../../../plugins/skills/read-skills.ts'
import { removeFolders } from '../../config/folder.ts'
import { eventually } from '../../support/eventually.ts'
import { startReloading, stopReloading } from '../../support/reloading-host.ts'
import { modern } from '../../support/rpc.ts'
import { stopHosts } from '../../support/start-host.ts'
import { as, bearerJson } from '../tool-policy/bearer-json.ts'
import { bytesIn, serveFolder, skill, writeSkills } from './serve-skills.ts'

const FILES = {
  'finance/refunds/SKILL.md': skill('refunds'),
  'finance/refunds/limits.md': 'limits',
  'handbook/SKILL.md': skill('handbook'),
  'pool/x.md': 'pool',
}

describe('Symbolic links in a skills folder', () => {
  afterEach(stopHosts)
  after(removeFolders)

  it('do not bypass policy rules for any name of the file', async () => {
    const folder = await writeSkills(FILES)
    const at = (name: string) => join(folder, 'skills', name)
    await symlink('../pool/x.md', at('finance/x.md'))
    await symlink('../finance/refunds', at('handbook/refunds'))
    await symlink('../finance/refunds/limits.md', at('handbook/file.md'))
    await symlink('../finance/x.md', at('handbook/over.md'))
    await symlink(at('finance/refunds/limits.md'), at('handbook/absolute.md'))
    await mkdir(at('handbook/deep'))
    await symlink('../refunds', at('handbook/deep/refunds'))
    await symlink('../pool/x.md', at('handbook/fine.md'))
    await link(at('finance/refunds/limits.md'), at('handbook/hard.md'))
    const names = [
      'refunds/SKILL.md',
      'refunds/limits.md',
      'file.md',
      'over.md',
      'absolute.md',
      'deep/refunds/limits.md',
      'hard.md',
    ]
    const rulesets = ['skill:finance/*', 'skill:finance', 'resource:skill://finance/*']
    for (const rule of rulesets) {
      const plugins = { bearer: bearerJson(), 'tool-policy': { rules: { [rule]: { role: 'finance' } } } }
      const { ask } = await serveFolder(folder, { plugins })
      // Only what is in a folder of it falls under finance/*.
      for (const name of names.filter(one => rule !== 'skill:finance/*' || one !== 'over.md')) {
        const uri = `skill://handbook/${name}`
        expect((await ask('resources/read', { uri })).status, `${rule} ${name}`).to.equal(401)
        expect(
          (await ask('resources/read', { uri }, { headers: as({ subject: 'f', roles: ['finance'] }) })).status,
        ).to.equal(200)
      }
      expect((await ask('resources/read', { uri: 'skill://handbook/fine.md' })).status).to.equal(200)
      await stopHosts()
    }
  })
})

/** Swaps a file, or a folder, for a link to a secret and back, until it is ended. */
const SWAP = `const fs = require('fs'), [kind, dir, secret] = process.argv.slice(1), parent = process.ppid
const file = () => { fs.writeFileSync(dir + '/.p', 'harmless'); fs.renameSync(dir + '/.p', dir + '/zz.md')
  fs.symlinkSync(secret + '/id.md', dir + '/.q'); fs.renameSync(dir + '/.q', dir + '/zz.md') }
const above = () => { fs.renameSync(dir + '/sub', dir + '/.sub'); fs.symlinkSync(secret, dir + '/sub')
  fs.unlinkSync(dir + '/sub'); fs.renameSync(dir + '/.sub', dir + '/sub') }
fs.writeFileSync(dir + '/.swapping', ''); for (;;) { for (let i = 0; i < 50; i++) (kind === 'file' ? file : above)()
  if (process.ppid !== parent) process.exit() }`

const SECRET = 'the secret outside of the folder'
const MANY = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`skills/one/f${at}.md`, `${at}`]))
const CONFIG = `import { defineConfig } from HERE
export default defineConfig({
  server: { name: 'swapped', version: '1.0.0' }, http: { port: 0 },
  secrets: ['a secret for tests, long enough to be one'],
  toolsets: { none: [] }, routes: { '/': { toolsets: 'none' } },
  plugins: { 'transport-streamable': {}, skills: { folder: './skills' } },
})
`

describe('Symbolic link races in a skills folder', function () {
  this.timeout(120_000)
  let swapping: ChildProcess | undefined
  afterEach(async () => {
    swapping?.kill('SIGKILL')
    await stopReloading()
  })
  after(removeFolders)

  for (const [kind, name] of [
    ['file', 'zz.md'],
    ['folder', 'sub/id.md'],
  ] as const) {
    it(`serve no outside file while a ${kind} is swapped for a link`, async () => {
      const host = await startReloading({
        'mcp.config.ts': CONFIG,
        'skills/one/SKILL.md': skill('one'),
        ...MANY,
        [`skills/one/${name}`]: 'harmless',
      })
      await mkdir(join(host.folder, 'outside'))
      await writeFile(join(host.folder, 'outside/id.md'), SECRET)
      const one = join(host.folder, 'skills/one')
      swapping = spawn(process.execPath, ['-e', SWAP, kind, one, join(host.folder, 'outside')])
      const { access } = await import('node:fs/promises')
      const begun = () =>
        access(join(one, '.swapping')).then(
          () => true,
          () => false,
        )
      await eventually('it is swapped', begun, isSo => isSo)
      const told = { secret: 0, answers: 0 }
      for (let turn = 0; turn < 150; turn++) {
        const skills = await readSkills(join(host.folder, 'skills'), 'skills', () => undefined)
        const bytes = String(skills?.[0]?.files.find(({ uri }) => uri === `skill://one/${name}`)?.bytes ?? '')
        if (bytes.includes(SECRET)) told.secret++
      }
      for (let turn = 0; turn < 10; turn++) {
        await Promise.allSettled([host.reload()])
        const { message } = await modern(host.url, 'resources/read', { uri: `skill://one/${name}` })
        const text = message.result ? String(bytesIn(message.result)) : ''
        told.answers++
        if (text.includes(SECRET)) told.secret++
      }
      expect(told.secret).to.equal(0)
      expect(told.answers).to.equal(10)
    })
  }

  it('apply the same check without /proc', async () => {
    const folder = await writeSkills({
      'one/SKILL.md': skill('one'),
      'one/zz.md': 'harmless',
      'one/sub/id.md': 'harmless',
    })
    const [one, outside] = [join(folder, 'skills/one'), join(folder, 'outside')]
    await mkdir(outside)
    await writeFile(join(outside, 'id.md'), SECRET)
    let secret = 0
    swapping = spawn(process.execPath, ['-e', SWAP, 'folder', one, outside])
    for (let turn = 0; turn < 4_000; turn++) {
      const read = await readFile(join(one, 'sub/id.md'), 100, '/nowhere').catch(() => undefined)
      if (read && String(read.bytes).includes(SECRET)) secret++
    }
    expect(secret).to.equal(0)
    await symlink(outside, join(one, 'link'))
    const [outcome] = await Promise.allSettled([readFile(join(one, 'link/id.md'), 100, '/nowhere')])
    expect(outcome.status).to.equal('rejected')
  })
})
