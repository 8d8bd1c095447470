// Tests the references of the example config; test/flow tests that it serves.
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect } from 'chai'
import config from '../../mcp.config.example.ts'

describe('mcp.config.example.ts', () => {
  const root = join(import.meta.dirname, '../..')

  for (const [toolset, source] of Object.entries(config.toolsets ?? {})) {
    it(`names a module of definitions only for the toolset ${toolset}`, async () => {
      const module = await import(pathToFileURL(join(root, String(source))).href)
      const names = Object.values(module).map(value => (value as { name?: unknown }).name)
      expect(names).to.be.an('array').that.is.not.empty
      expect(new Set(names)).to.have.lengthOf(names.length)
      for (const value of Object.values(module)) expect(value).to.have.property('handler').that.is.a('function')
    })
  }

  it('has routes to existing toolsets only', () => {
    const named = Object.values(config.routes).flatMap(({ toolsets, default: fallback = [] }) =>
      [typeof toolsets === 'object' && 'of' in toolsets ? toolsets.of : toolsets, fallback].flat(),
    )
    const fixed = named.filter(name => !name.startsWith(':'))
    expect(Object.keys(config.toolsets ?? {})).to.include.members(fixed)
    expect(fixed).to.include.members(Object.keys(config.toolsets ?? {}))
  })
})
