// Links in a skills folder: a file has one name only, and link races never serve outside files.
import { type ChildProcess, spawn } from 'node:child_process'
import { link, mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { readFile } from '../../../plugins/skills/read-file.ts'
import { readSkills } from '../../../plugins/skills/read-skills.ts'
import { removeFolders } from '../../config/folder.ts'
import { startFailure } from '../../fixtures/start-failure.ts'
import { eventually } from '../../support/eventually.ts'
import { startReloading, stopReloading } from '../../support/reloading-host.ts'
import { modern } from '../../support/rpc.ts'
import { bytesIn, skill, skillsConfig, writeSkills } from './serve-skills.ts'

const FILES = {
  'finance/refunds/SKILL.md': skill('refunds'),
  'finance/refunds/limits.md': 'limits',
  'handbook/SKILL.md': skill('handbook'),
}

describe('Symbolic links in a skills folder', () => {
  after(removeFolders)

  it('and hard links cannot give a file a second name, which policy rules would not apply to', async () => {
    const links: ReadonlyArray<(at: (name: string) => string) => Promise<void>> = [
      at => symlink('../finance/refunds', at('handbook/refunds')),
      at => symlink('../finance/refunds/limits.md', at('handbook/file.md')),
      at => symlink(at('finance/refunds/limits.md'), at('handbook/absolute.md')),
      at => link(at('finance/refunds/limits.md'), at('handbook/hard.md')),
    ]
    for (const make of links) {
      const folder = await writeSkills(FILES)
      await make(name => join(folder, 'skills', name))
      const error = await startFailure(skillsConfig({}), folder)
      expect(error.message).to.match(/skills\/(?:handbook|finance)\/\S+: it is a (?:symbolic|hard) link/)
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

describe('Symbolic link races in a skills folder', () => {
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
      for (let turn = 0; turn < 40; turn++) {
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
    for (let turn = 0; turn < 1_000; turn++) {
      const read = await readFile(join(one, 'sub/id.md'), 100, '/nowhere').catch(() => undefined)
      if (read && String(read.bytes).includes(SECRET)) secret++
    }
    expect(secret).to.equal(0)
    await symlink(outside, join(one, 'link'))
    const [outcome] = await Promise.allSettled([readFile(join(one, 'link/id.md'), 100, '/nowhere')])
    expect(outcome.status).to.equal('rejected')
  })
})
