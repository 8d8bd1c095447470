// Runs the commands that `start` prints, as a shell reads them. The host runs in this process, and one command in its own.
import { execFile } from 'node:child_process'
import { networkInterfaces, tmpdir } from 'node:os'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { bundledFile } from '../support/compiled.ts'
import { configText, runCli, startCli, stopAll } from './in-process.ts'
import type { ConfigParts } from './running-command.ts'

const run = promisify(execFile)

after(removeFolders)

/** Returns the page that `start` prints. */
async function serve(parts: ConfigParts): Promise<string> {
  // As without npm: its own folder has no mcp-host.
  const env = { npm_command: undefined, npm_execpath: undefined }
  const script = bundledFile('cli/bin.ts')
  const running = startCli(['start'], await makeFolder({ 'mcp.config.mjs': configText(parts) }), env, { script })
  const [page] = await running.printed(/[\s\S]*^listening on .*\n/m)
  return page
}

const callIn = (page: string): string => /^ {2}Try +(.* call .*)$/m.exec(page)?.[1] ?? ''

/** Results of the printed call: those of `echo` in the first toolset and of `other` in the second. */
async function resultOf(page: string): Promise<string> {
  const { stdout } = await run('sh', ['-c', callIn(page).replace(/^.* call /, "printf '%s\\n' call ")])
  return (await runCli(stdout.trim().split('\n'), tmpdir())).stdout.trim()
}

describe('printed command works', () => {
  afterEach(stopAll)

  it('has a call, which works', async () => {
    const tool =
      "defineTool({ name: 'add', input: { type: 'object', properties: { a: { type: 'integer' } } }, handler: () => 'added' })"
    const page = await serve({ tool, routes: "{ '/': { toolsets: 'second' } }" })
    expect(page).to.match(/^ {2}mcp-host .* config mcp\.config\.mjs\n/)
    expect((await run('sh', ['-c', callIn(page)])).stdout.trim()).to.equal('added')
    expect(page).to.match(/^ {2}Connect .* connect claude-code http:\S+$/m)
  })

  it('has the first open route', async () => {
    const page = await serve({
      routes: `{
        '/': { toolsets: ['first'] },
        '/off': { toolsets: ['second'], plugins: { 'transport-streamable': false } },
        '/t/:category?': { toolsets: ':category', default: ['second'] },
      }`,
    })
    expect(await resultOf(page)).to.equal('echoed')
  })

  for (const [what, routes, result] of [
    [
      'a route whose parameter has a default',
      "{ '/t/:category?': { toolsets: ':category', default: ['second'] } }",
      'other',
    ],
    ['a route whose parameter has no default', "{ '/t/:category?': { toolsets: ':category' } }", 'echoed'],
    ['a route with a parameter that names no toolset', "{ '/:tenant/mcp': { toolsets: 'second' } }", 'other'],
    ['a path with characters that a shell reads', `{ "/it's&co;$HOME": { toolsets: 'first' } }`, 'echoed'],
  ] as const) {
    it(`if the only route is ${what}`, async () => {
      const page = await serve({ routes })
      expect(await resultOf(page)).to.equal(result)
    })
  }

  it('on a host that is bound to every address', async () => {
    const page = await serve({ http: "{ host: '0.0.0.0', port: 0 }" })
    expect(await resultOf(page)).to.equal('echoed')
  })

  it('on a host that is bound to IPv6 loopback', async function () {
    const addresses = Object.values(networkInterfaces()).flatMap(known => known ?? [])
    if (!addresses.some(({ address }) => address === '::1')) this.skip()
    const page = await serve({ http: "{ host: '::1', port: 0 }" })
    expect(page).to.match(/^listening on http:\/\/\[::1\]:\d+$/m)
    expect(await resultOf(page)).to.equal('echoed')
  })
})
