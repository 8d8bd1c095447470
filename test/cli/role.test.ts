// Tests `mcp-host start --role`: the role applies to the plugin `tasks`, also on routes with their own options. Without
// the plugin, startup fails.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { configText, runCli, startCli, stopAll } from './in-process.ts'

after(async () => {
  await stopAll()
  await removeFolders()
})

/** A plugin in the place of `tasks`, which writes down the role that it is given. */
const SAYS = `import { appendFileSync } from 'node:fs'
const says = definePlugin({
  options: {
    type: 'object', additionalProperties: false,
    properties: { role: { type: 'string', default: 'both' }, ttl: { type: 'string', default: '1h' } },
  },
  setup: (host, { role, ttl }) => appendFileSync(new URL('roles.txt', import.meta.url), role + ' for ' + ttl + '\\n'),
})`

const folderWith = (plugins: string, routes = "{ '/': { toolsets: ['first', 'second'] } }") =>
  makeFolder({ 'mcp.config.mjs': configText({ before: SAYS, plugins, routes }) })

const rolesIn = async (folder: string) => (await readFile(join(folder, 'roles.txt'), 'utf8')).trim().split('\n')

describe('mcp-host start --role', () => {
  it('overrides the role in the config', async () => {
    for (const [role, plugins] of [
      ['worker', "tasks: says({ role: 'front', ttl: '2h' })"],
      ['front', 'tasks: says()'],
    ] as const) {
      const cwd = await folderWith(plugins)
      const started = startCli(['start', '--role', role], cwd)
      await started.listening()
      started.child.kill('SIGTERM')
      const { code } = await started.ended
      expect(await rolesIn(cwd)).to.deep.equal([role === 'worker' ? 'worker for 2h' : 'front for 1h'])
      expect(code).to.equal(0)
    }
  })

  it('applies to a route with its own options', async () => {
    const cwd = await folderWith(
      'tasks: says()',
      `{ '/': { toolsets: ['first'] }, '/own': { toolsets: ['second'], plugins: { tasks: { role: 'front', ttl: '3h' } } } }`,
    )
    const started = startCli(['start', '--role', 'worker'], cwd)
    await started.listening()
    started.child.kill('SIGTERM')
    await started.ended
    expect((await rolesIn(cwd)).sort()).to.deep.equal(['worker for 1h', 'worker for 3h'])
  })

  it('fails startup for an unknown role, and if the config does not have the plugin', async () => {
    const cwd = await folderWith('')
    const off = await folderWith('tasks: false')
    {
      const none = await runCli(['start', '--role', 'front'], cwd)
      expect(none.code).to.equal(2)
      expect(none.stderr).to.match(/--role front.*"tasks".*plugins: \{ tasks: \{\} \}/)
      const wrong = await runCli(['start', '--role', 'boss'], cwd)
      expect(wrong.code).to.equal(2)
      expect(wrong.stderr).to.match(/--role is "boss".*worker, front, both/)
    }
    expect((await runCli(['start', '--role', 'both'], off)).code).to.equal(2)
  })
})
