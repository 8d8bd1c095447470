// Tests public OpenAPI documents: each is served whole, every schema compiles, and 20 operations can be called against a stub that is
// made from the document. test/slow/openapi-documents.slow.ts has larger ones.
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { checkDocument } from '../../support/openapi-document.ts'
import { stopHosts } from '../../support/start-host.ts'

const { resolve } = createRequire(import.meta.url)
const folderOf = (name: string) => dirname(resolve(`${name}/package.json`))

/** Files with the number of their operations that use the methods of `checkDocument`. */
const DOCUMENTS = {
  '@figma/rest-api-spec': { file: 'openapi/openapi.yaml', tools: 54 },
  '@directus/specs': { file: 'dist/openapi.json', tools: 136 },
  '@blockfrost/openapi': { file: 'openapi.yaml', tools: 129 },
}

afterEach(stopHosts)

describe('Public OpenAPI documents', () => {
  for (const [name, { file, tools }] of Object.entries(DOCUMENTS)) {
    it(`of ${name} are served whole: all schemas compile, and 20 operations can be called`, async () => {
      const checked = await checkDocument(join(folderOf(name), file), 20)
      expect(checked).to.deep.equal({ tools, called: 20, leftOut: [] })
    })
  }
})
