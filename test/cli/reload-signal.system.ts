// Tests SIGHUP to `start` with one process: it reloads the config and logs the result.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { eventually } from '../support/eventually.ts'
import type { RpcMessage } from '../support/rpc.ts'
import { nextMessage, openSession } from '../support/session-client.ts'
import { editedConfig } from './edited-config.ts'
import { needsTerminals, startInTerminal } from './in-terminal.ts'
import { CORE, startCli, stopAll } from './run-cli.ts'

after(async () => {
  await stopAll()
  await removeFolders()
})

const CONFIG = editedConfig({
  tools: './tools.ts',
  path: '/',
  before: "import { own } from './own.ts'",
  plugins: 'own: own()',
})
const OWN = `import { definePlugin } from '${CORE}'
export const own = definePlugin({ options: { type: 'object', additionalProperties: false, properties: {} }, setup() {} })
`
const toolsOf = (...names: string[]) => `import { defineTool } from '${CORE}'
import { text } from './text.ts'
${names.map(name => `export const ${name} = defineTool({ name: '${name}', handler: () => text })`).join('\n')}
`
const FILES = {
  'mcp.config.ts': CONFIG,
  'own.ts': OWN,
  'tools.ts': toolsOf('say'),
  'text.ts': "export const text: string = 'one'",
  'my.env': 'GREETING=hello\n',
}

const textOf = ({ result }: RpcMessage): string => result.content[0].text

describe('SIGHUP to mcp-host start', () => {
  it('reads the config, its tools, their imports and its --env-file again; sessions and streams continue', async () => {
    const folder = await makeFolder(FILES)
    const running = startCli(['start', '--env-file', 'my.env'], folder)
    const url = await running.listening()
    const session = await openSession(url)
    const stream = await session.get()
    expect(session.initialized.message.result.instructions).to.equal('hello')
    const say = async () => textOf((await session.request('tools/call', { name: 'say' })).message)
    expect(await say()).to.equal('one')

    await writeFile(join(folder, 'text.ts'), "export const text: string = 'two'")
    await writeFile(join(folder, 'tools.ts'), toolsOf('say', 'more'))
    await writeFile(join(folder, 'my.env'), 'GREETING=goodbye\n')
    running.child.kill('SIGHUP')
    await running.logged(/"taken":\["server","toolsets\.talk"\],"told":1,"msg":"Reloaded"/)
    expect(await say()).to.equal('two')
    expect((await nextMessage(stream)).method).to.equal('notifications/tools/list_changed')
    expect((await openSession(url)).initialized.message.result.instructions).to.equal('goodbye')

    await writeFile(join(folder, 'text.ts'), 'export const text: string =')
    running.child.kill('SIGHUP')
    await running.logged(/text\.ts:1[^\n]*"msg":"Reload failed/)
    expect(await say()).to.equal('two')

    await writeFile(join(folder, 'text.ts'), "export const text: string = 'three'")
    await writeFile(join(folder, 'own.ts'), `${OWN}// changed`)
    running.child.kill('SIGHUP')
    await running.logged(
      /"restart":\["plugins\.own \(its module\)"\],"msg":"Not reloaded: these changes require a restart/,
    )
    expect(await say()).to.equal('two')

    running.child.kill('SIGTERM')
    const { code, stdout } = await running.ended
    expect(stdout).to.match(/\nstopped; running requests: 0 finished, 0 cancelled\n$/)
    expect(code).to.equal(0)
  })

  it('many at once cause two reloads at most', async () => {
    const folder = await makeFolder(FILES)
    const running = startCli(['start'], folder)
    await running.listening()
    for (let count = 0; count < 20; count++) running.child.kill('SIGHUP')
    await running.logged(/"msg":"Reloaded: no changes"/)
    running.child.kill('SIGTERM')
    const { code, stderr } = await running.ended
    expect(stderr.match(/"msg":"Reloaded/g)?.length).to.be.within(1, 3)
    expect(code).to.equal(0)
  })

  it('drains and ends if it comes with the end of the terminal', async function () {
    needsTerminals(this)
    const folder = await makeFolder({
      ...FILES,
      'tools.ts': `${toolsOf('say')}\nprocess.on('exit', code => {
  const { writeFileSync } = process.getBuiltinModule('node:fs')
  writeFileSync('ended.txt', String(code))
})`,
    })
    const running = startInTerminal(['start'], folder)
    await running.listening()
    // Without `script` nobody holds the terminal any more.
    running.child.kill('SIGKILL')
    const ended = () => readFile(join(folder, 'ended.txt'), 'utf8').catch(() => undefined)
    expect(await eventually('the process ends', ended)).to.equal('0')
  })
})
