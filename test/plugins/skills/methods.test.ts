// Skills methods of the extension and resource methods, in both protocol eras.
import { expect } from 'chai'
import { removeFolders } from '../../config/folder.ts'
import type { RpcMessage } from '../../support/rpc.ts'
import { openSession } from '../../support/session-client.ts'
import { stopHosts } from '../../support/start-host.ts'
import { itThorough } from '../../support/thorough.ts'
import { allPages, bytesIn, digestOf, type Files, type SkillsHost, serveSkills, skill, urisOf } from './serve-skills.ts'

const PNG = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')
const LATIN1 = Buffer.from('gr\u00fcn', 'latin1')
const FILES: Files = {
  'README.md': 'not of a skill',
  'pdf/SKILL.md': `\uFEFF${skill('pdf', 'license: MIT\nmetadata:\n  version: "2.1"\n  tags: [a, 1, true, null]\n')}`,
  'pdf/references/FORMS.md': '# Formulare\r\nÄ 𝄞\n',
  'pdf/references/deep/er/x.txt': '',
  'pdf/scripts/extract.py': 'print(1)\n',
  'pdf/assets/logo.png': PNG,
  'pdf/assets/old.txt': LATIN1,
  'pdf/assets/LICENSE': 'free',
  'pdf/assets/data.bin': Uint8Array.of(0, 1, 2),
  'pdf/assets/nul.md': 'a\u0000b',
  'acme/billing/refunds/SKILL.md': skill('refunds').replaceAll('\n', '\r\n'),
  'acme/billing/refunds/a b+c,é#1.md': 'odd',
  'acme/billing/refunds/inner/SKILL.md': skill('inner'),
  'acme/billing/refunds/inner/note.md': 'inner',
  'acme/notes.txt': 'of no skill',
}
const REFUNDS = 'skill://acme/billing/refunds'

describe('Skills methods', () => {
  let host: SkillsHost
  before(async () => {
    host = await serveSkills(FILES)
  })
  after(async () => {
    await stopHosts()
    await removeFolders()
  })

  const codeOf = async (method: string, params: object) => {
    const { status, message } = await host.ask(method, params)
    return [status, message.error?.code, message.error?.message]
  }

  it('declare the extension with directoryRead, and resources, in both eras', async () => {
    const settings = { 'io.modelcontextprotocol/skills': { directoryRead: true } }
    const { capabilities } = await host.result('server/discover')
    expect(capabilities.extensions).to.deep.equal(settings)
    expect(capabilities).to.have.property('resources')
    const session = await openSession(host.url)
    expect(session.initialized.message.result.capabilities).to.deep.include({ extensions: settings })
    expect(session.initialized.message.result.capabilities).to.have.property('resources')
  })

  it('list all skills flat with their files and cache hints', async () => {
    const { skills, ttlMs, cacheScope, resultType, nextCursor } = await host.result('skills/list')
    expect({ ttlMs, cacheScope, resultType, nextCursor }).to.deep.equal({
      ttlMs: 60_000,
      cacheScope: 'public',
      resultType: 'complete',
      nextCursor: undefined,
    })
    expect(urisOf(skills)).to.deep.equal([`${REFUNDS}/SKILL.md`, `${REFUNDS}/inner/SKILL.md`, 'skill://pdf/SKILL.md'])
    expect(
      skills.map((one: RpcMessage) => urisOf(one.resources).map(uri => uri.replace(`${REFUNDS}/`, ''))),
    ).to.deep.equal([
      ['SKILL.md', 'a%20b+c,%C3%A9%231.md', 'inner/SKILL.md', 'inner/note.md'],
      ['inner/SKILL.md', 'inner/note.md'],
      [
        'skill://pdf/SKILL.md',
        'skill://pdf/assets/LICENSE',
        'skill://pdf/assets/data.bin',
        'skill://pdf/assets/logo.png',
        'skill://pdf/assets/nul.md',
        'skill://pdf/assets/old.txt',
        'skill://pdf/references/FORMS.md',
        'skill://pdf/references/deep/er/x.txt',
        'skill://pdf/scripts/extract.py',
      ],
    ])
    expect(skills[2].frontmatter).to.deep.equal({
      name: 'pdf',
      description: 'What pdf is for.',
      license: 'MIT',
      metadata: { version: '2.1', tags: ['a', 1, true, null] },
    })
  })

  it('list the digest and size of every file as read', async () => {
    const { skills } = await host.result('skills/list')
    let read = 0
    for (const { resources } of skills) {
      for (const { uri, digest, size } of resources) {
        const bytes = bytesIn(await host.result('resources/read', { uri }))
        expect([digestOf(bytes), bytes.length], uri).to.deep.equal([digest, size])
        const path = decodeURIComponent(uri.slice('skill://'.length))
        expect(Buffer.compare(bytes, Buffer.from(FILES[path] ?? 'missing')), path).to.equal(0)
        read++
      }
    }
    expect(read).to.equal(15)
  })

  it('send text files as text and other files as blobs', async () => {
    const kinds: Record<string, string[]> = {}
    for (const { uri } of (await host.result('resources/list')).resources) {
      const [content] = (await host.result('resources/read', { uri })).contents
      const kind = `${content.mimeType} ${content.text === undefined ? 'blob' : 'text'}`
      kinds[kind] = [...(kinds[kind] ?? []), uri.slice(uri.lastIndexOf('/') + 1)]
    }
    expect(kinds).to.deep.equal({
      'text/markdown text': ['SKILL.md', 'a%20b+c,%C3%A9%231.md', 'SKILL.md', 'note.md', 'SKILL.md', 'FORMS.md'],
      'text/plain text': ['LICENSE', 'x.txt'],
      'application/octet-stream blob': ['data.bin'],
      'image/png blob': ['logo.png'],
      'text/markdown blob': ['nul.md'],
      'text/plain blob': ['old.txt'],
      'text/x-python text': ['extract.py'],
    })
  })

  it('list skills as resources, with SKILL.md name and description', async () => {
    const { resources } = await host.result('resources/list')
    expect(resources).to.have.lengthOf(13)
    const about = ({ name, description, mimeType, size }: RpcMessage) => ({ name, description, mimeType, size })
    const at = (uri: string) => about(resources.find((one: RpcMessage) => one.uri === uri))
    const text = String(FILES['acme/billing/refunds/SKILL.md'])
    expect(at(`${REFUNDS}/SKILL.md`)).to.deep.equal({
      name: 'refunds',
      description: 'What refunds is for.',
      mimeType: 'text/markdown',
      size: Buffer.byteLength(text),
    })
    expect(at('skill://pdf/assets/logo.png')).to.deep.equal({
      name: 'logo.png',
      description: undefined,
      mimeType: 'image/png',
      size: PNG.length,
    })
  })

  it('skills/get returns the list entry, only for a SKILL.md URI', async () => {
    const { skills } = await host.result('skills/list')
    for (const one of skills) {
      const { skill: got, ttlMs, cacheScope, ...rest } = await host.result('skills/get', { uri: one.uri })
      expect(got).to.deep.equal(one)
      expect([ttlMs, cacheScope, rest.nextCursor]).to.deep.equal([60_000, 'public', undefined])
    }
    const wrong = [
      'skill://nothing/SKILL.md',
      'skill://pdf',
      'skill://pdf/',
      'skill://pdf/references/FORMS.md',
      'skill://acme/SKILL.md',
      '',
    ]
    for (const uri of wrong) {
      const [status, code, text] = await codeOf('skills/get', { uri })
      expect([status, code], uri).to.deep.equal([200, -32602])
      expect(text).to.include(uri)
    }
    for (const params of [{}, { uri: 7 }, { uri: null }, { uri: ['skill://pdf/SKILL.md'] }]) {
      expect((await codeOf('skills/get', params)).slice(0, 2), JSON.stringify(params)).to.deep.equal([200, -32602])
    }
  })

  it('resources/directory/read lists files and folders, including those above skills', async () => {
    const { resources } = await host.result('resources/list')
    const read = async (uri: string) => (await host.result('resources/directory/read', { uri })).resources
    const folder = (uri: string, name: string) => ({ uri, name, mimeType: 'inode/directory' })
    const file = (uri: string) => resources.find((one: RpcMessage) => one.uri === uri)
    expect(await read('skill://pdf')).to.deep.equal([
      file('skill://pdf/SKILL.md'),
      folder('skill://pdf/assets', 'assets'),
      folder('skill://pdf/references', 'references'),
      folder('skill://pdf/scripts', 'scripts'),
    ])
    expect(await read('skill://pdf/references/deep')).to.deep.equal([folder('skill://pdf/references/deep/er', 'er')])
    expect(await read('skill://acme')).to.deep.equal([folder('skill://acme/billing', 'billing')])
    expect(await read(REFUNDS)).to.deep.equal([
      file(`${REFUNDS}/SKILL.md`),
      file(`${REFUNDS}/a%20b+c,%C3%A9%231.md`),
      folder(`${REFUNDS}/inner`, 'inner'),
    ])
    const all = resources.length
    let found = 0
    const waiting = ['skill://pdf', 'skill://acme']
    for (let uri = waiting.pop(); uri !== undefined; uri = waiting.pop()) {
      for (const entry of await read(uri)) {
        if (entry.mimeType === 'inode/directory') waiting.push(entry.uri)
        else found++
      }
    }
    expect(found).to.equal(all)
    expect((await codeOf('resources/directory/read', { uri: 'skill://pdf/SKILL.md' }))[2]).to.contain('is not a folder')
    for (const uri of ['skill://pdf/', 'skill://', 'skill://pdf/none', 'skill:', 'skill://README.md', 'file:///etc']) {
      expect((await codeOf('resources/directory/read', { uri })).slice(0, 2), uri).to.deep.equal([200, -32602])
    }
    expect((await codeOf('resources/directory/read', {})).slice(0, 2)).to.deep.equal([200, -32602])
  })

  it('serve sessions of older protocol versions without newer fields', async () => {
    const session = await openSession(host.url)
    const { result: listed } = (await session.request('skills/list')).message
    expect(Object.keys(listed)).to.deep.equal(['skills'])
    expect(listed.skills).to.have.lengthOf(3)
    const { result: got } = (await session.request('skills/get', { uri: 'skill://pdf/SKILL.md' })).message
    expect(got).to.deep.equal({ skill: listed.skills[2] })
    const { result: read } = (await session.request('resources/directory/read', { uri: 'skill://acme' })).message
    expect(Object.keys(read)).to.deep.equal(['resources'])
    const unknown = (await session.request('skills/get', { uri: 'skill://none/SKILL.md' })).message
    expect(unknown.error.code).to.equal(-32602)
  })
})

describe('Skills pagination', () => {
  after(async () => {
    await stopHosts()
    await removeFolders()
  })

  it('returns 100 skills or 500 folder entries per page, with cursors', async () => {
    const names = Array.from({ length: 101 }, (_, at) => `s${at}`)
    const host = await serveSkills({
      ...Object.fromEntries(names.map(name => [`${name}/SKILL.md`, skill(name)])),
      ...Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`s0/f${at}.md`, `${at}`])),
    })
    const pages = await allPages(host, 'skills/list', 'skills')
    expect(pages.map(page => page.length)).to.deep.equal([100, 1])
    expect(urisOf(pages.flat())).to.deep.equal(names.map(name => `skill://${name}/SKILL.md`).sort())
    const folders = await allPages(host, 'resources/directory/read', 'resources', { uri: 'skill://s0' })
    expect(folders.map(page => page.length)).to.deep.equal([500, 1])
    expect(new Set(urisOf(folders.flat())).size).to.equal(501)
    const { skill: whole } = await host.result('skills/get', { uri: 'skill://s0/SKILL.md' })
    expect(whole.resources).to.have.lengthOf(501)
    for (const method of ['skills/list', 'resources/directory/read']) {
      for (const cursor of ['', 'x', 7, {}, Buffer.from('before:x').toString('base64url')]) {
        const { message } = await host.ask(method, { uri: 'skill://s0', cursor })
        expect(message.error?.code, `${method} ${JSON.stringify(cursor)}`).to.equal(-32602)
      }
    }
  })

  itThorough('limits pages to about 1 MiB and never splits a skill', async () => {
    // Names that are three times as long in a URI: few files fill a page.
    const names = Array.from({ length: 9 }, (_, at) => `big-${at}`)
    const files = names.flatMap(name => [
      [`${name}/SKILL.md`, skill(name)] as const,
      ...Array.from({ length: 300 }, (_, at) => [`${name}/${'\u00e9'.repeat(120)}-${at}.md`, ''] as const),
    ])
    const host = await serveSkills(Object.fromEntries(files))
    const pages = await allPages(host, 'skills/list', 'skills')
    const sizes = pages.map(page => JSON.stringify(page).length)
    expect(pages.length).to.be.above(2)
    expect(Math.max(...sizes)).to.be.below(1024 * 1024 + 1000)
    expect(pages.flat()).to.have.lengthOf(9)
    for (const { resources } of pages.flat()) expect(resources).to.have.lengthOf(301)
  })
})
