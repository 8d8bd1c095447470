// Tests that --frozen and --role apply to every worker.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { callText } from '../support/steady-load.ts'
import { CORE, configText, runCli, startCli, stopAll } from './run-cli.ts'

after(async () => {
  await stopAll()
  await removeFolders()
})

const tools = (description: string, says: string) => `import { defineTool } from '${CORE}'
export const say = defineTool({ name: 'say', description: '${description}', handler: () => '${says}' })
`

/** A plugin in the place of `tasks`, which prints the role that it is given. */
const SAYS = `const says = definePlugin({
  options: { type: 'object', additionalProperties: false, properties: { role: { type: 'string' } } },
  setup: (host, { role }) => { console.log('the role is ' + role + ';') },
})`
const CONFIG = configText({
  before: SAYS,
  tool: "'./tools.mjs'",
  routes: "{ '/': { toolsets: 'second', stateless: true } }",
  plugins: 'tasks: says()',
})
const rolesIn = (text: string) => [...text.matchAll(/the role is ([^;]*);/g)].map(([, role]) => role)

describe('mcp-host start --workers 2', () => {
  it('--frozen and --role apply to every worker, at startup and after a reload', async () => {
    const folder = await makeFolder({ 'mcp.config.mjs': CONFIG, 'tools.mjs': tools('Says one', 'one') })
    const write = (text: string) => writeFile(join(folder, 'tools.mjs'), text)
    await runCli(['lock'], folder)
    const running = startCli(['start', '--frozen', '--workers', '2', '--role', 'front'], folder)
    const url = await running.listening()
    await running.printed(/^primary: pid/m)
    await write(tools('Says two', 'two'))
    running.child.kill('SIGHUP')
    const [line] = await running.logged(/^.*"msg":"Reload failed: a new worker could not start.*$/m)
    expect(JSON.parse(line).problem).to.match(/mcp\.lock\.json/)
    expect(await callText(url, 'say')).to.equal('one')
    const refused = await runCli(['start', '--frozen', '--workers', '2'], folder)
    expect(refused.stderr).to.match(/^mcp-host: error \w+: --frozen/)
    expect(refused.stdout).not.to.include('listening')
    expect(refused.code).to.equal(2)

    await runCli(['lock'], folder)
    running.child.kill('SIGHUP')
    await running.logged(/"msg":"Reloaded"/)
    expect(await callText(url, 'say')).to.equal('two')
    running.child.kill('SIGTERM')
    const { code, stdout } = await running.ended
    expect(code).to.equal(0)
    const roles = rolesIn(stdout)
    expect(roles).to.deep.equal(roles.map(() => 'front'))
    expect(roles).to.have.length.of.at.least(4)
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
