// Tests that --frozen and --role apply to every worker.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { eventually } from '../support/eventually.ts'
import { callText } from '../support/steady-load.ts'
import { CORE, configText, runCli, startCli, stopAll } from './run-cli.ts'

after(async () => {
  await stopAll()
  await removeFolders()
})

const CONFIG = configText({ tool: "'./tools.mjs'", routes: "{ '/': { toolsets: 'second', stateless: true } }" })
const tools = (description: string, says: string) => `import { defineTool } from '${CORE}'
export const say = defineTool({ name: 'say', description: '${description}', handler: () => '${says}' })
`

/** A plugin in the place of `tasks`, which prints the role that it is given. */
const SAYS = `const says = definePlugin({
  options: { type: 'object', additionalProperties: false, properties: { role: { type: 'string' } } },
  setup: (host, { role }) => { console.log('the role is ' + role + ';') },
})`
const rolesIn = (text: string) => [...text.matchAll(/the role is ([^;]*);/g)].map(([, role]) => role)

describe('mcp-host start --workers 2', () => {
  it('--frozen applies to every worker, at startup and after a reload', async () => {
    const folder = await makeFolder({ 'mcp.config.mjs': CONFIG, 'tools.mjs': tools('Says one', 'one') })
    const write = (text: string) => writeFile(join(folder, 'tools.mjs'), text)
    await runCli(['lock'], folder)
    const running = startCli(['start', '--frozen', '--workers', '2'], folder)
    const url = await running.listening()
    await running.printed(/^primary: pid/m)
    await write(tools('Says two', 'two'))
    running.child.kill('SIGHUP')
    const [line] = await running.logged(/^.*"msg":"Reload failed: a new worker could not start.*$/m)
    expect(JSON.parse(line).problem).to.match(/mcp\.lock\.json/)
    expect(await callText(url, 'say')).to.equal('one')
    await runCli(['lock'], folder)
    running.child.kill('SIGHUP')
    await running.logged(/"msg":"Reloaded"/)
    expect(await callText(url, 'say')).to.equal('two')
    running.child.kill('SIGTERM')
    expect((await running.ended).code).to.equal(0)

    await write(tools('Says three', 'three'))
    const refused = await runCli(['start', '--frozen', '--workers', '2'], folder)
    expect(refused.stderr).to.match(/^mcp-host: error \w+: --frozen/)
    expect([refused.code, refused.stdout]).to.deep.equal([2, ''])
  })

  it('--role applies to every worker', async () => {
    const routes = "{ '/': { toolsets: 'first', stateless: true } }"
    const config = configText({ before: SAYS, plugins: 'tasks: says()', routes })
    const cwd = await makeFolder({ 'mcp.config.mjs': config })
    const started = startCli(['start', '--workers', '2', '--role', 'front'], cwd)
    const { printed } = started
    await started.listening()
    const both = await eventually(
      'both workers to say it',
      async () => rolesIn((await printed(/^/)).input),
      roles => roles.length === 2,
    )
    started.child.kill('SIGTERM')
    await started.ended
    expect(both).to.deep.equal(['front', 'front'])
  })
})

describe('mcp-host start in one process', () => {
  it('--role is kept at a reload, which fails if the plugin is gone', async () => {
    const cwd = await makeFolder({
      'mcp.config.mjs': configText({ before: SAYS, plugins: "tasks: says({ role: 'front' })" }),
    })
    const file = join(cwd, 'mcp.config.mjs')
    const started = startCli(['start', '--role', 'worker'], cwd)
    await started.listening()
    await writeFile(file, configText({ before: SAYS, plugins: "tasks: says({ role: 'both' })" }))
    started.child.kill('SIGHUP')
    await started.logged(/reloaded/)
    await writeFile(file, configText({ before: SAYS }))
    started.child.kill('SIGHUP')
    await started.logged(/Reload failed.*requires the plugin|requires the plugin.*Reload failed/)
    started.child.kill('SIGTERM')
    const { stdout, stderr } = await started.ended
    expect(rolesIn(stdout)).to.deep.equal(['worker', 'worker'])
    expect(stderr).to.include('--role worker requires the plugin')
  })
})
