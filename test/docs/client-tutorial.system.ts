// Tests the program of docs/tutorials/client.md with the protected example: only its first run opens the browser.
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { startFakeBrowser, stopFakeBrowsers } from '../cli/fake-browser.ts'
import { removeFolders } from '../config/folder.ts'
import { ROOT, readBlocks } from '../support/doc-blocks.ts'
import { Browser } from '../support/form-browser.ts'
import { startProtectedExample } from '../support/protected-example.ts'

describe('The program of docs/tutorials/client.md', () => {
  // In the repository, so that it can import the package.
  const folder = mkdtempSync(join(import.meta.dirname, 'blocks-'))
  after(async () => {
    rmSync(folder, { recursive: true, force: true })
    await stopFakeBrowsers()
    await removeFolders()
  })

  it('opens the browser on the first run, and lists the tools on each run', async () => {
    const host = await startProtectedExample()
    const browser = await startFakeBrowser(url => new Browser(url.origin).allow(url, 'ada'))
    const [program] = readBlocks('docs/tutorials/client.md').filter(({ language }) => language === 'js')
    const file = join(folder, 'call.js')
    const code = program?.code.replace('http://127.0.0.1:3000/mcp', `${host.url}/`) ?? ''
    // The entry for Node.js; the paths of tsconfig.json have the one for browsers.
    writeFileSync(file, code.replace("'mcp-host/client'", `'${join(ROOT, 'client/node/client.ts')}'`))
    const env = { ...process.env, ...browser.env, MCP_HOST_TOKEN_KEY: '' }
    for (let run = 0; run < 2; run++) {
      const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', file], { cwd: folder, env })
      expect(stdout).to.include("'current_time'")
      expect(browser.opened).to.have.lengthOf(1)
    }
    await host.close({ grace: 0 })
  })
})
