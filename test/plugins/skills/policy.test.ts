// Access rules of tool-policy for skills: lists, descriptions, folders, reads and subscriptions.
import { expect } from 'chai'
import { defineResource, type User } from '../../../core/index.ts'
import type { ToolPolicyOptions } from '../../../plugins/tool-policy/index.ts'
import { removeFolders } from '../../config/folder.ts'
import type { RpcMessage } from '../../support/rpc.ts'
import { stopHosts } from '../../support/start-host.ts'
import { as, bearerJson } from '../tool-policy/bearer-json.ts'
import { type Files, type SkillsHost, serveSkills, skill, urisOf } from './serve-skills.ts'

const FILES: Files = {
  'open/SKILL.md': skill('open'),
  'open/a.md': 'a',
  'open/secret/SKILL.md': skill('secret'),
  'open/secret/key.md': 'key',
  'finance/refunds/SKILL.md': skill('refunds'),
  'finance/refunds/templates/x.md': 'x',
  'finance/taxes/SKILL.md': skill('taxes'),
  'größe 1/demo/SKILL.md': skill('demo'),
}
const STAFF = { subject: 'sam', scopes: ['staff'] }
const NOBODY = { subject: 'ned' }

const start = (options: ToolPolicyOptions, files = FILES) =>
  serveSkills(files, { plugins: { bearer: bearerJson(), 'tool-policy': options } })

const staff = (...globs: string[]): ToolPolicyOptions => ({
  rules: Object.fromEntries(globs.map(glob => [glob, { scope: 'staff' }])),
})

async function seenBy({ result }: SkillsHost, user: Partial<User> | undefined) {
  const options = { headers: as(user) }
  const { skills, cacheScope } = await result('skills/list', {}, options)
  const { resources } = await result('resources/list', {}, options)
  expect(cacheScope).to.equal('private')
  return {
    skills: skills.map(({ frontmatter }: RpcMessage) => frontmatter.name),
    files: new Set<string>(skills.flatMap((one: RpcMessage) => urisOf(one.resources))),
    resources: new Set(urisOf(resources)),
  }
}

/** What a caller is answered who names a URI to each method. */
async function answers({ ask }: SkillsHost, user: Partial<User> | undefined, uri: string, folder: string) {
  const told: Record<string, unknown> = {}
  for (const [method, params] of [
    ['skills/get', { uri }],
    ['resources/read', { uri }],
    ['resources/directory/read', { uri: folder }],
  ] as const) {
    const { status, message } = await ask(method, params, { headers: as(user) })
    told[method] = message.error ? `${status} ${message.error.code}` : status
  }
  return told
}

describe('Skills with tool-policy', () => {
  afterEach(stopHosts)
  after(removeFolders)

  it('are absent with all files from the lists of unauthorized callers', async () => {
    const host = await start(staff('skill:finance/*'))
    const all = await seenBy(host, STAFF)
    expect(all.skills).to.deep.equal(['refunds', 'taxes', 'demo', 'open', 'secret'])
    expect(all.resources.size).to.equal(8)
    for (const user of [NOBODY, undefined]) {
      const seen = await seenBy(host, user)
      expect(seen.skills).to.deep.equal(['demo', 'open', 'secret'])
      expect([...seen.resources].filter(uri => uri.startsWith('skill://finance'))).to.deep.equal([])
      expect(seen.files).to.deep.equal(seen.resources)
    }
  })

  it('are refused by name with an auth challenge, but unknown names are not found', async () => {
    const host = await start(staff('skill:finance/refunds'))
    const [uri, folder] = ['skill://finance/refunds/SKILL.md', 'skill://finance/refunds']
    const all = (told: string | number) => ({
      'skills/get': told,
      'resources/read': told,
      'resources/directory/read': told,
    })
    expect(await answers(host, undefined, uri, folder)).to.deep.equal(all('401 -32600'))
    expect(await answers(host, NOBODY, uri, folder)).to.deep.equal(all('403 -32000'))
    expect(await answers(host, STAFF, uri, folder)).to.deep.equal(all(200))
    for (const user of [undefined, NOBODY, STAFF]) {
      expect(await answers(host, user, 'skill://finance/none/SKILL.md', 'skill://finance/none')).to.deep.equal(
        all('200 -32602'),
      )
    }
    const { headers } = await host.ask('skills/get', { uri }, { headers: as(NOBODY) })
    expect(headers.get('www-authenticate')).to.match(/insufficient_scope.*scope="staff"/)
  })

  it('leave no trace in parent folders or the enclosing skill', async () => {
    const host = await start(staff('skill:open/secret', 'skill:finance/*'))
    const read = async (uri: string, user: Partial<User>) =>
      urisOf((await host.result('resources/directory/read', { uri }, { headers: as(user) })).resources)
    expect(await read('skill://open', STAFF)).to.deep.equal([
      'skill://open/SKILL.md',
      'skill://open/a.md',
      'skill://open/secret',
    ])
    expect(await read('skill://open', NOBODY)).to.deep.equal(['skill://open/SKILL.md', 'skill://open/a.md'])
    const refused = await host.ask('resources/directory/read', { uri: 'skill://finance' }, { headers: as(NOBODY) })
    expect(refused.status).to.equal(403)
    const { skill: open } = await host.result('skills/get', { uri: 'skill://open/SKILL.md' }, { headers: as(NOBODY) })
    expect(urisOf(open.resources)).to.deep.equal(['skill://open/SKILL.md', 'skill://open/a.md'])
  })

  it('are matched by folder name, and a folder rule covers its content', async () => {
    const shownWith = async (...globs: string[]) => {
      const host = await start(staff(...globs))
      const { skills } = await seenBy(host, NOBODY)
      await stopHosts()
      return skills
    }
    expect(await shownWith('skill:größe 1/demo')).to.deep.equal(['refunds', 'taxes', 'open', 'secret'])
    expect(await shownWith('skill:open')).to.deep.equal(['refunds', 'taxes', 'demo'])
    expect(await shownWith('skill:finance')).to.deep.equal(['demo', 'open', 'secret'])
    expect(await shownWith('skill:*')).to.deep.equal([])
    expect(await shownWith('skill:fin*s')).to.deep.equal(['demo', 'open', 'secret'])
    expect(await shownWith('resource:skill://open/*')).to.deep.equal(['refunds', 'taxes', 'demo'])
  })

  it('omit a file with a resource rule everywhere', async () => {
    const host = await start(staff('resource:skill://finance/refunds/templates/*'))
    const { files, resources, skills } = await seenBy(host, NOBODY)
    expect(skills).to.contain('refunds')
    expect(files.has('skill://finance/refunds/templates/x.md')).to.equal(false)
    expect(resources).to.deep.equal(files)
    const folder = { uri: 'skill://finance/refunds' }
    const read = await host.result('resources/directory/read', folder, { headers: as(NOBODY) })
    expect(urisOf(read.resources)).to.deep.equal(['skill://finance/refunds/SKILL.md'])
  })

  it('are listed but refused with `listed`', async () => {
    const rule = { policy: { scope: 'staff' }, visibility: 'listed' as const }
    const host = await start({ rules: { 'skill:finance/refunds': rule } })
    expect((await seenBy(host, NOBODY)).skills).to.contain('refunds')
    const uri = 'skill://finance/refunds/SKILL.md'
    expect((await host.ask('skills/get', { uri }, { headers: as(NOBODY) })).status).to.equal(403)
  })

  it('are served in shadow mode, and each would-be refusal is logged', async () => {
    const host = await start({ ...staff('skill:finance/*'), mode: 'shadow' })
    const uri = 'skill://finance/taxes/SKILL.md'
    for (const method of ['skills/get', 'resources/read']) {
      expect((await host.ask(method, { uri }, { headers: as(NOBODY) })).status).to.equal(200)
    }
    const shadowed = host.log.filter(line => line['shadow'] === true).map(line => [line['method'], line['item']])
    expect(shadowed).to.deep.equal([
      ['skills/get', uri],
      ['resources/read', uri],
    ])
  })

  it('fail startup if a rule matches no skill, with the closest name', async () => {
    for (const glob of ['finance/refund', 'Finance/refunds', 'finance/refunds/SKILL.md']) {
      const [outcome] = await Promise.allSettled([start(staff(`skill:${glob}`))])
      const told = outcome.status === 'rejected' ? String(outcome.reason) : 'it started'
      expect(told).to.contain('matches nothing that is defined at start').and.to.contain('finance/refunds')
    }
  })

  it('match rules in any Unicode normalisation form', async () => {
    const files = { ['gehälter/list/SKILL.md'.normalize('NFD')]: skill('list'), 'open/SKILL.md': skill('open') }
    for (const form of ['NFC', 'NFD']) {
      const host = await start(staff(`skill:${'gehälter'.normalize(form)}/*`), files)
      expect((await seenBy(host, NOBODY)).skills, form).to.deep.equal(['open'])
      await stopHosts()
    }
  })

  it('from a template are covered by a rule for any URI that it matches', async () => {
    const template = defineResource({ name: 't', uriTemplate: 'skill://x/{+path}', handler: () => 'x' })
    const host = await serveSkills(FILES, {
      toolsets: { none: [template] },
      plugins: { bearer: bearerJson(), 'tool-policy': staff('skill:x/secret') },
    })
    const { status } = await host.ask('resources/read', { uri: 'skill://x/open/a' }, { headers: as(NOBODY) })
    expect(status).to.equal(403)
  })
})
