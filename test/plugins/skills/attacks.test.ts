// Skill URIs from hostile clients: path traversal, alternative spellings, oversized names and invalid cursors.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { normalUri } from '../../../core/mcp/normal-uri.ts'
import { removeFolders } from '../../config/folder.ts'
import { stopHosts } from '../../support/start-host.ts'
import { selectCases } from '../../support/thorough.ts'
import { type SkillsHost, serveFolder, skill, writeSkills } from './serve-skills.ts'

const SECRET = 'the secret beside the skills'

/** Ways to write a path upwards. */
const UP = [
  '..',
  '%2e%2e',
  '%2E%2E',
  '.%2e',
  '%2e.',
  '%252e%252e',
  '%c0%ae%c0%ae',
  '..;',
  '\u2025',
  '．．',
  '..\\',
  '..%5c',
  '%00..',
]
const SLASH = ['/', '%2f', '%2F', '%252f', '\\', '%5c', '//', '/./']
const TARGETS = ['secret.txt', 'skills/one/a.md', 'etc/passwd', 'one/a.md']

/** One file, spelled in other ways. */
const SPELLINGS = [
  'skill://one//a.md',
  'skill://one/./a.md',
  'skill://one/x/../a.md',
  'skill://one/%61.md',
  'skill://one/a%2Emd',
  'skill://one/a.md/',
  'skill://one/a.md?x',
  'skill://one/a.md#x',
  'skill://one/a.md%00',
  'skill://one/a.md\u0000',
  'skill://one/A.MD',
  'skill://ONE/a.md',
  'SKILL://one/a.md',
  'skill:one/a.md',
  'skill:/one/a.md',
  'skill:///one/a.md',
  'skill://user@one/a.md',
  'skill://one:80/a.md',
  ' skill://one/a.md',
  'skill://one/a.md ',
  'skill://one\\a.md',
  'skill://o%6ee/a.md',
  'file://one/a.md',
  '/one/a.md',
  'one/a.md',
  'a.md',
]

describe('Skills: hostile URIs', () => {
  let host: SkillsHost
  before(async () => {
    const folder = await writeSkills({ 'one/SKILL.md': skill('one'), 'one/a.md': 'a', 'one/.env': SECRET })
    await writeFile(join(folder, 'secret.txt'), SECRET)
    host = await serveFolder(folder)
  })
  after(async () => {
    await stopHosts()
    await removeFolders()
  })

  const METHODS = ['skills/get', 'resources/read', 'resources/directory/read'] as const

  async function expectUnknown(uris: Iterable<string>): Promise<number> {
    let tried = 0
    for (const uri of uris) {
      for (const method of METHODS) {
        const { status, message, text } = await host.ask(method, { uri }, { headers: { 'Mcp-Name': encoded(uri) } })
        const label = `${method} ${JSON.stringify(uri.slice(0, 100))}`
        expect([status, message.error?.code], label).to.deep.equal([200, -32602])
        expect(text.length, label).to.be.below(20_000)
        expect(text, label).not.to.contain(SECRET)
        tried++
      }
    }
    return tried
  }

  /** A header cannot have every character. */
  const encoded = (uri: string) => `=?base64?${Buffer.from(uri).toString('base64')}?=`

  it('reject path traversal', async () => {
    const paths = UP.flatMap(up =>
      SLASH.flatMap(slash => TARGETS.map(target => `skill://one${slash}${up}${slash}${target}`)),
    )
    const deep = UP.map(up => `skill://one/${`${up}/`.repeat(12)}etc/passwd`)
    const uris = selectCases(
      [...paths, ...deep].filter((_, index) => index % 3 === 0),
      20,
    )
    expect(await expectUnknown(uris)).to.equal(uris.length * METHODS.length)
  })

  it('reject hidden files and URIs that are not equivalent to the URI of a file', async () => {
    const hidden = ['skill://one/.env', 'skill://one/.git/config', 'skill://.', 'skill://..', 'skill://']
    const FILES = ['skill://one/a.md', 'skill://one/SKILL.md']
    // Equivalent by RFC 3986 section 6.2.2: the same resource.
    const [equivalent, other] = [true, false].map(is => SPELLINGS.filter(uri => FILES.includes(normalUri(uri)) === is))
    await expectUnknown([...(other ?? []), ...hidden])
    for (const uri of ['skill://one/a.md', ...(equivalent ?? [])]) {
      const { message } = await host.ask('resources/read', { uri }, { headers: { 'Mcp-Name': encoded(uri) } })
      expect(message.result.contents[0].uri, uri).to.equal(normalUri(uri))
    }
  })

  it('reject Object.prototype names, and do not echo long names', async () => {
    const tried = await expectUnknown([
      '__proto__',
      'constructor',
      'toString',
      'skill://__proto__',
      'skill://one/constructor',
    ])
    expect(tried).to.equal(15)
    for (const method of ['skills/get', 'resources/directory/read']) {
      const { message, text } = await host.ask(method, { uri: `skill://${'x'.repeat(100_000)}/SKILL.md` })
      expect(message.error.code).to.equal(-32602)
      expect(text.length).to.be.below(1_000)
    }
  })

  it('reject oversized and invalid cursors quickly', async () => {
    const cursors = ['x'.repeat(100_000), Buffer.from(`after:${'\uFFFF'.repeat(10_000)}`).toString('base64url')]
    for (const cursor of cursors) {
      for (const method of ['skills/list', 'resources/directory/read']) {
        const { message } = await host.ask(method, { uri: 'skill://one', cursor })
        const { skills, resources } = message.result ?? {}
        expect(message.error?.code === -32602 || (skills ?? resources).length === 0, method).to.equal(true)
      }
    }
  })
})
