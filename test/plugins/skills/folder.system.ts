// Content of a skills folder: symbolic links, hidden files, file names, size limits and startup errors.
import { spawnSync } from 'node:child_process'
import { readdirSync, readlinkSync } from 'node:fs'
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { StartError } from '../../../core/plugin.ts'
import { readSkills } from '../../../plugins/skills/read-skills.ts'
import { fileProblem } from '../../../plugins/skills/walk.ts'
import { removeFolders } from '../../config/folder.ts'
import { startFailure } from '../../fixtures/start-failure.ts'
import { stopHosts } from '../../support/start-host.ts'
import { bytesIn, type Files, serveFolder, skill, skillsConfig, urisOf, writeSkills } from './serve-skills.ts'

const MIB = 1024 * 1024
const DEMO: Files = { 'demo/SKILL.md': skill('demo') }

/** A folder of skills that a test changed by hand. */
async function folderOf(files: Files, change: (skills: string, folder: string) => unknown = () => undefined) {
  const folder = await writeSkills(files)
  await change(join(folder, 'skills'), folder)
  return folder
}

/** The files below a folder that this process has open; it may open and close others at any time. */
const openIn = (folder: string): string[] =>
  readdirSync('/proc/self/fd').flatMap(fd => {
    try {
      const file = readlinkSync(`/proc/self/fd/${fd}`)
      return file.startsWith(folder) ? file : []
    } catch {
      return []
    }
  })

async function filesIn(folder: string): Promise<string[]> {
  const { result } = await serveFolder(folder)
  return urisOf((await result('resources/list')).resources)
}

async function refused(folder: string, words: string | RegExp, options?: { folder: string }) {
  const plugins = { ...(options && { skills: options }) }
  const error = await startFailure(skillsConfig({ plugins }), folder)
  expect(error, error.stack).to.be.instanceOf(StartError)
  if (typeof words === 'string') expect(error.message).to.contain(words)
  else expect(error.message).to.match(words)
}

describe('Skills folder', () => {
  afterEach(stopHosts)
  after(removeFolders)

  it('must exist, be a folder and contain a skill', async () => {
    const folder = await folderOf({ 'acme/readme.md': 'x' })
    await refused(folder, 'folder: none: it does not exist', { folder: './none' })
    await refused(folder, 'folder: package.json: it is not a folder', { folder: './package.json' })
    await refused(folder, 'skills: no folder in it has a SKILL.md')
  })

  it('must not be a skill itself', async () => {
    const folder = await folderOf(DEMO)
    await refused(folder, 'skills/demo/SKILL.md: it is in the folder of the skills itself', { folder: './skills/demo' })
  })

  it('excludes hidden files and files outside of skills', async () => {
    const folder = await folderOf({
      ...DEMO,
      'demo/.git/config': 'secret',
      'demo/.env': 'secret',
      'demo/.DS_Store': 'x',
      'demo/a/.hidden/SKILL.md': 'x',
      '.hidden/SKILL.md': 'x',
      'README.md': 'x',
      'acme/notes.md': 'x',
    })
    expect(await filesIn(folder)).to.deep.equal(['skill://demo/SKILL.md'])
  })

  it('fails startup on SKILL.md in another case, except inside a skill', async () => {
    await refused(
      await folderOf({ ...DEMO, 'other/Skill.md': skill('other') }),
      'other/Skill.md: rename it to SKILL.md',
    )
    expect(await filesIn(await folderOf({ ...DEMO, 'demo/docs/skill.md': 'x' }))).to.have.lengthOf(2)
  })

  it('allows a linked root and Kubernetes volumes', async () => {
    const version = '..2026_11_23_10_00_00.123456789'
    const folder = await folderOf(
      { ...DEMO, [`demo/${version}/y.md`]: 'volume', [`${version}/demo/z.md`]: 'volume' },
      async (skills, above) => {
        await symlink(version, join(skills, 'demo/..data'))
        await symlink('..data/y.md', join(skills, 'demo/y.md'))
        await symlink(version, join(skills, '..data'))
        await symlink('../..data/demo/z.md', join(skills, 'demo/z.md'))
        await rename(skills, join(above, 'really'))
        await symlink('really', skills)
      },
    )
    expect(await filesIn(folder)).to.deep.equal(['skill://demo/SKILL.md', 'skill://demo/y.md', 'skill://demo/z.md'])
  })

  it('refuses symbolic links', async () => {
    const cases: ReadonlyArray<readonly [target: string, words: RegExp]> = [
      ...[
        ...['/etc/passwd', '/etc', '../../package.json', '../../skills-other/x.md', '../..', '/proc/self/environ', '.'],
        ...['..', '.env', '../.git', '../.git/config', '../..2026/x.md', 'SKILL.md', '../..data/demo/other.md'],
      ].map(target => [target, /skills\/demo\/link: it is a symbolic link: put a copy/] as const),
      ['nowhere', /broken symbolic link/],
      ['link', /leads back to itself/],
    ]
    for (const [target, words] of cases) {
      const folder = await folderOf(DEMO, async (skills, above) => {
        await mkdir(join(above, 'skills-other'))
        await writeFile(join(above, 'skills-other/x.md'), 'secret')
        for (const hidden of ['.git', '..2026', '..data/demo']) await mkdir(join(skills, hidden), { recursive: true })
        for (const file of ['demo/.env', '.git/config', '..2026/x.md', '..data/demo/other.md'])
          await writeFile(join(skills, file), 'secret')
        await symlink(target, join(skills, 'demo/link'))
      })
      await refused(folder, words)
    }
  })

  it('refuses special files, and a FIFO does not block startup', async () => {
    const folder = await folderOf(DEMO, skills => {
      expect(spawnSync('mkfifo', [join(skills, 'demo/pipe')]).status).to.equal(0)
    })
    await refused(folder, 'skills/demo/pipe: it is neither a file nor a folder')
  })

  it('refuses case-colliding names, control characters and invalid UTF-8', async () => {
    await refused(
      await folderOf({ ...DEMO, 'demo/a/X.md': '1', 'demo/A/x.md': '2' }),
      /on many disks it is the same as/,
    )
    await refused(
      await folderOf({ ...DEMO, 'demo/\u00e9.md': '1', 'demo/e\u0301.md': '2' }),
      /on many disks it is the same/,
    )
    await refused(await folderOf({ ...DEMO, 'demo/a\nb.md': '1' }), 'its name has control characters')
    const folder = await folderOf(DEMO, skills =>
      writeFile(Buffer.concat([Buffer.from(join(skills, 'demo/')), Buffer.from([0xff, 0xfe])]), 'x'),
    )
    await refused(folder, 'is not UTF-8')
  })

  it('normalises Unicode names to one URI', async () => {
    const folder = await folderOf({
      'e\u0301:@ü/demo/SKILL.md': skill('demo'),
      "e\u0301:@ü/demo/a:@!$&'()*+,;=%~.md": 'x',
    })
    expect(await filesIn(folder)).to.deep.equal([
      'skill://%C3%A9%3A%40%C3%BC/demo/SKILL.md',
      "skill://%C3%A9%3A%40%C3%BC/demo/a:@!$&'()*+,;=%25~.md",
    ])
    for (const uri of await filesIn(folder)) expect(new URL(uri).href).to.equal(uri)
  })

  it('allows 512 files per skill, and reports the number beyond', async () => {
    const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`demo/${at}.md`, '']))
    const { result } = await serveFolder(await folderOf({ ...DEMO, ...many(511) }))
    const { skill: demo } = await result('skills/get', { uri: 'skill://demo/SKILL.md' })
    expect(demo.resources).to.have.lengthOf(512)
    await stopHosts()
    await refused(await folderOf({ ...DEMO, ...many(1511) }), 'skills/demo: the skill has 1,512 files; at most 512')
  })

  it('allows 16 MiB per skill including nested skills, but not per folder', async () => {
    const big = (bytes: number) => Buffer.alloc(bytes, 'x')
    const rest = 16 * MIB - Buffer.byteLength(skill('demo'))
    const fits = await folderOf({ ...DEMO, 'demo/a.bin': big(rest), 'b/SKILL.md': skill('b'), 'b/b.bin': big(MIB) })
    const { result } = await serveFolder(fits)
    expect(bytesIn(await result('resources/read', { uri: 'skill://demo/a.bin' })).length).to.equal(rest)
    await stopHosts()
    await refused(await folderOf({ ...DEMO, 'demo/a.bin': big(rest + 1) }), 'have 16,777,217 bytes; at most 16,777,216')
    const inner = { 'demo/in/SKILL.md': skill('in'), 'demo/in/a.bin': big(9 * MIB), 'demo/b.bin': big(9 * MIB) }
    await refused(await folderOf({ ...DEMO, ...inner }), /skills\/demo: the files of the skill have 18,874,\d{3} bytes/)
  })

  it('rejects a too deep folder', async () => {
    const deep = `${Array.from({ length: 40 }, () => 'd').join('/')}/x.md`
    await refused(await folderOf({ ...DEMO, [`demo/${deep}`]: 'x' }), 'folders are nested more than 32 deep')
  })

  it('closes every file, also on errors', async () => {
    const good = await folderOf({ ...DEMO, 'demo/big.bin': Buffer.alloc(2 * MIB), 'demo/a.md': 'a' })
    const bad = await folderOf({ 'demo/SKILL.md': 'broken', 'demo/a.md': 'a', 'demo/b/SKILL.md': 'broken' })
    const open = () => openIn(good).concat(openIn(bad))
    const read = (folder: string) => readSkills(join(folder, 'skills'), 'skills', () => undefined)
    for (let turn = 0; turn < 10; turn++) {
      expect(await read(good)).to.have.lengthOf(1)
      expect(await read(bad)).to.equal(undefined)
    }
    expect(open()).to.deep.equal([])
  })

  it('reports why a file cannot be read', () => {
    const trouble = (code: string) => fileProblem(Object.assign(new Error('x'), { code }))
    expect(trouble('EACCES')).to.contain('the user of this process cannot read it')
    expect(trouble('EIO')).to.equal('it cannot be read: EIO')
  })

  it('can differ per route, and false disables it', async () => {
    const folder = await folderOf(DEMO, async (_, above) => {
      await mkdir(join(above, 'more/extra'), { recursive: true })
      await writeFile(join(above, 'more/extra/SKILL.md'), skill('extra'))
    })
    const routes = {
      '/': { toolsets: 'none' },
      '/more': { toolsets: 'none', plugins: { skills: { folder: './more' } } },
      '/off': { toolsets: 'none', plugins: { skills: false as const } },
    }
    const { url, result } = await serveFolder(folder, { routes })
    expect(urisOf((await result('skills/list')).skills)).to.deep.equal(['skill://demo/SKILL.md'])
    const { modern } = await import('../../support/rpc.ts')
    const more = await modern(`${url}/more`, 'skills/list')
    expect(urisOf(more.message.result.skills)).to.deep.equal(['skill://extra/SKILL.md'])
    expect(
      (await modern(`${url}/more`, 'resources/read', { uri: 'skill://demo/SKILL.md' })).message.error.code,
    ).to.equal(-32602)
    const off = await modern(`${url}/off`, 'skills/list')
    expect([off.status, off.message.error.code]).to.deep.equal([404, -32601])
  })

  it('deleted after startup is served from memory, except large files', async () => {
    const folder = await folderOf({ ...DEMO, 'demo/big.bin': Buffer.alloc(2 * MIB) })
    const { result, ask, log } = await serveFolder(folder)
    await rm(join(folder, 'skills'), { recursive: true })
    expect(bytesIn(await result('resources/read', { uri: 'skill://demo/SKILL.md' })).toString()).to.equal(skill('demo'))
    const { status, message } = await ask('resources/read', { uri: 'skill://demo/big.bin' })
    expect([status, message.error.code]).to.deep.equal([200, -32603])
    expect(message.error.message).to.contain('has changed since it was listed')
    expect(log.some(({ message: text }) => text === 'a file of a skill cannot be read')).to.equal(true)
  })
})
