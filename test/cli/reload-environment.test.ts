// Tests env files at a reload: a rejected config leaves the environment unchanged.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { createEnvFiles } from '../../cli/config.ts'
import { reloadConfig } from '../../cli/serve.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { startReloading, stopReloading } from '../support/reloading-host.ts'
import { modern } from '../support/rpc.ts'

const NAME = 'MCP_HOST_TEST_WORD'

after(async () => {
  delete process.env[NAME]
  await stopReloading()
  await removeFolders()
})

const FILES = {
  'mcp.config.ts': `export default {
    server: { name: 'reloaded', version: '1.0.0' }, http: { port: 0 },
    secrets: ['a secret for tests, long enough to be one'],
    toolsets: { say: './say.ts' },
    routes: { '/': { toolsets: ['say'] } }, plugins: { 'transport-streamable': {} },
  }`,
  'say.ts': `import { defineTool } from HERE
const atImport = process.env['${NAME}']
export const say = defineTool({ name: 'say', handler: () => atImport + ' ' + process.env['${NAME}'] })
`,
}

/** A host that began with the word `old`; `say` answers the word at the import and the one at the call. */
async function start() {
  delete process.env[NAME]
  const made = await makeFolder({ '.env': `${NAME}=old` })
  const file = join(made, '.env')
  const env = createEnvFiles(() => [file], { env: process.env, cwd: made })
  env.load()
  const { host, url, folder, edit } = await startReloading(FILES)
  return {
    edit,
    setWord: (word: string) => writeFile(file, `${NAME}=${word}`),
    async reload() {
      const reloaded = await reloadConfig({ host, config: join(folder, 'mcp.config.ts'), env, cwd: folder })
      return 'error' in reloaded ? 'failed' : reloaded.report
    },
    say: async () => (await modern(url, 'tools/call', { name: 'say' })).message.result.content[0].text,
  }
}

describe('an env file', () => {
  it('is read with a byte order mark, and reported if it is UTF-16', async () => {
    const text = `\uFEFF${NAME}=new`
    const cwd = await makeFolder({ '.env': text, 'utf16.env': Buffer.from(text, 'utf16le') })
    const env: NodeJS.ProcessEnv = {}
    createEnvFiles(() => ['.env'], { env, cwd }).load()
    expect(env[NAME]).to.equal('new')
    expect(() => createEnvFiles(() => ['utf16.env'], { env, cwd }).load()).to.throw(
      `${join(cwd, 'utf16.env')} cannot be read: the file is UTF-16`,
    )
  })
})

const RESTART = { restart: ['http.keepAliveTimeout'], taken: [], told: 0 }
const REFUSED = [
  ['fails', "port: 'x'", 'failed'],
  ['takes a restart', "port: 0, keepAliveTimeout: '7s'", RESTART],
] as const

describe('environment after a reload', () => {
  for (const [what, port, outcome] of REFUSED) {
    it(`that ${what} is as before, and the next reload applies the changes`, async () => {
      const { edit, setWord, reload, say } = await start()
      await setWord('new')
      await edit('mcp.config.ts', 'port: 0', port)
      for (let times = 0; times < 2; times++) {
        expect(await reload()).to.deep.equal(outcome)
        expect(await say()).to.equal('old old')
      }
      await edit('mcp.config.ts', port, 'port: 0')
      expect(await reload()).to.deep.include({ taken: ['toolsets.say'] })
      expect(await say()).to.equal('new new')
      expect(await reload()).to.deep.include({ taken: [] })
    })

    it(`that ${what} leaves no values in modules, even if the file is as before again`, async () => {
      const { edit, setWord, reload, say } = await start()
      await setWord('new')
      await edit('mcp.config.ts', 'port: 0', port)
      await reload()
      await setWord('old')
      expect(await reload()).to.deep.equal(outcome)
      await edit('mcp.config.ts', port, 'port: 0')
      await reload()
      expect(await say()).to.equal('old old')
    })
  }
})
