// Tests `mcp-host start --frozen`: only locked definitions are served, at startup and after a reload.
// workers-options.system.ts tests it with workers.
import { copyFile, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { modern } from '../support/rpc.ts'
import { CORE, configText, type Running, runCli, startCli, stopAll } from './in-process.ts'

after(stopAll)
after(removeFolders)

const CONFIG = configText({ tool: "'./tools.mjs'", routes: "{ '/': { toolsets: 'second' } }" })
const tools = (description: string, says: string, more = '') => `import { defineTool } from '${CORE}'
export const say = defineTool({ name: 'say', description: '${description}', handler: () => '${says}' })
${more}
`
const MANY = Array.from(
  { length: 12 },
  (_, index) => `export const more${index} = defineTool({ name: 'more${index}', handler: () => '' })`,
).join('\n')

async function lockedFolder() {
  const folder = await makeFolder({ 'mcp.config.mjs': CONFIG, 'tools.mjs': tools('Says one', 'one') })
  expect((await runCli(['lock'], folder)).code).to.equal(0)
  return folder
}

/** A folder with the same lock and other tools. */
async function editedFolder(text: string) {
  const lock = await readFile(join(await lockedFolder(), 'mcp.lock.json'), 'utf8')
  return makeFolder({ 'mcp.config.mjs': CONFIG, 'tools.mjs': text, 'mcp.lock.json': lock })
}

const saidBy = async (url: string): Promise<string> =>
  (await modern(url, 'tools/call', { name: 'say' })).message.result.content[0].text

const end = (running: Running) => {
  running.child.kill('SIGTERM')
  return running.ended
}

describe('mcp-host start --frozen', () => {
  it('serves the locked definitions, whatever the handlers do', async () => {
    const folder = await editedFolder(tools('Says one', 'another thing'))
    const running = startCli(['start', '--frozen'], folder)
    expect(await saidBy(await running.listening())).to.equal('another thing')
    expect((await end(running)).code).to.equal(0)
  })

  it('fails for anything else, prints the first ten differences and the commands to run, and does not listen', async () => {
    const folder = await editedFolder(tools('Says two', 'two', MANY))
    const { code, stdout, stderr } = await runCli(['start', '--frozen'], folder)
    expect(stdout).to.equal('')
    const [first, ...lines] = stderr.trimEnd().split('\n')
    expect(first).to.match(/^mcp-host: error \w+: --frozen.*mcp\.lock\.json.*1.*12/)
    expect(lines[0]).to.equal('  read: /  tool "say": description changed')
    expect(lines[1]).to.equal('  harmless: /  tool "more0": added')
    expect(lines.slice(10)).to.deep.equal([
      '  and 3 more',
      'run mcp-host diff to see the changes; if they are intended, run mcp-host lock',
    ])
    expect(code).to.equal(2)
  })

  it('fails without a lock, and for a lock that no one can read', async () => {
    const folder = await lockedFolder()
    const missing = await runCli(['start', '--frozen', '--lock', 'other.json'], folder)
    expect(missing.stderr).to.match(/^mcp-host: error \w+: other\.json.*`mcp-host lock`/)
    const stray = await runCli(['start', '--lock', 'mcp.lock.json'], folder)
    expect(stray.stderr).to.match(/^mcp-host: error \w+: --lock requires --frozen\n$/)
    await rm(join(folder, 'mcp.lock.json'))
    const gone = await runCli(['start', '--frozen'], folder)
    expect([missing.code, stray.code, gone.code]).to.deep.equal([2, 2, 2])
  })

  it('rejects a reload that would change definitions, and accepts one with the same lock', async () => {
    const folder = await lockedFolder()
    const running = startCli(['start', '--frozen'], folder)
    const url = await running.listening()
    await writeFile(join(folder, 'tools.mjs'), tools('Says two', 'two'))
    running.child.kill('SIGHUP')
    const [line] = await running.logged(/^.*"msg":"Reload failed.*$/m)
    expect(JSON.parse(line).problem).to.contain('\n  read: /  tool "say": description changed\n')
    expect(await saidBy(url)).to.equal('one')

    const relocked = await editedFolder(tools('Says two', 'two'))
    await runCli(['lock'], relocked)
    await copyFile(join(relocked, 'mcp.lock.json'), join(folder, 'mcp.lock.json'))
    running.child.kill('SIGHUP')
    await running.logged(/"taken":\["toolsets\.second"\],"told":0,"msg":"Reloaded"/)
    expect(await saidBy(url)).to.equal('two')
    expect((await end(running)).code).to.equal(0)
  })

  it('accepts tools that are added at run time, which no lock contains', async () => {
    const adds = `defineTool({ name: 'say', description: 'Says one', handler: (_, ctx) => {
      ctx.host.tools.add(defineTool({ name: 'late', handler: () => '' }))
      return 'added'
    } })`
    const folder = await editedFolder(`import { defineTool } from '${CORE}'\nexport const say = ${adds}\n`)
    const running = startCli(['start', '--frozen'], folder)
    const url = await running.listening()
    expect(await saidBy(url)).to.equal('added')
    const { tools: listed } = (await modern(url, 'tools/list')).message.result
    expect(listed.map(({ name }: { name: string }) => name)).to.deep.equal(['late', 'say'])
    await end(running)
  })
})
