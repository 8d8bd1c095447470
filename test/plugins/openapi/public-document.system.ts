// Tests a public OpenAPI 3.1 document with recursive schemas; test/slow/openapi-documents.slow.ts has larger ones.
import { createRequire } from 'node:module'
import { expect } from 'chai'
import { checkDocument } from '../../support/openapi-document.ts'
import { stopHosts } from '../../support/start-host.ts'

after(stopHosts)

describe('The OpenAPI document of Figma', () => {
  it('is served whole: all schemas compile, and 20 operations can be called', async () => {
    const file = createRequire(import.meta.url).resolve('@figma/rest-api-spec/openapi/openapi.yaml')
    expect(await checkDocument(file, 20)).to.deep.equal({ tools: 54, called: 20, leftOut: [] })
  })
})
