// `mcp-host dev` with skills: changes are served without a restart, and errors are reported with their line.
import { mkdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { CORE, startCli, stopAll } from '../../cli/run-cli.ts'
import { makeFolder, removeFolders, replaceFile } from '../../config/folder.ts'
import { eventually } from '../../support/eventually.ts'
import { modern } from '../../support/rpc.ts'
import { nextMessage, openSession } from '../../support/session-client.ts'
import { skill, urisOf } from './serve-skills.ts'

const CONFIG = `import { defineConfig } from '${CORE}'
export default defineConfig({
  server: { name: 'dev', version: '1.0.0' },
  http: { port: 0 },
  toolsets: { none: [] },
  routes: { '/': { toolsets: 'none' } },
  plugins: { 'transport-streamable': {}, skills: { folder: './skills' } },
})
`

describe('mcp-host dev with skills', () => {
  after(async () => {
    await stopAll()
    await removeFolders()
  })

  async function start(files: Record<string, string>) {
    const folder = await makeFolder({ 'mcp.config.ts': CONFIG, ...files })
    const write = async (name: string, text: string) => {
      await mkdir(dirname(join(folder, name)), { recursive: true })
      await replaceFile(join(folder, name), text)
    }
    return { folder, write, running: startCli(['dev'], folder) }
  }

  it('serves edited, added and removed skills and notifies clients', async () => {
    const { folder, write, running } = await start({ 'skills/one/SKILL.md': skill('one'), 'skills/one/a.md': 'a' })
    const url = await running.listening()
    const listed = async () => urisOf((await modern(url, 'skills/list')).message.result.skills)
    const stream = await (await openSession(url)).get()
    await write('skills/one/a.md', 'b')
    await running.printed(/^Changed: skills\/one\/a\.md\nReloaded: plugins\.skills; notified 1 client$/m)
    expect((await nextMessage(stream)).method).to.equal('notifications/resources/list_changed')
    await write('skills/two/SKILL.md', skill('two'))
    await running.printed(/^Changed: skills\/two.*\nReloaded: plugins\.skills; notified 1 client$/m)
    expect(await listed()).to.deep.equal(['skill://one/SKILL.md', 'skill://two/SKILL.md'])
    await write('skills/two/SKILL.md', 'broken')
    await running.printed(/skills\/two\/SKILL\.md:1: [\s\S]*\nStill serving the previous version\.$/m)
    expect(await listed()).to.have.lengthOf(2)
    await rm(join(folder, 'skills/two'), { recursive: true })
    await eventually('the skill that was removed is no longer listed', listed, skills => skills.length === 1)
    stream.drop()
  })

  it('starts after a SKILL.md that is invalid at startup is fixed', async () => {
    const { write, running } = await start({ 'skills/one/SKILL.md': 'broken' })
    await running.logged(/skills\/one\/SKILL\.md:1: /)
    await running.printed(/It restarts after the next change/)
    await write('skills/one/SKILL.md', skill('one'))
    const url = await running.listening()
    expect(urisOf((await modern(url, 'skills/list')).message.result.skills)).to.deep.equal(['skill://one/SKILL.md'])
  })
})
