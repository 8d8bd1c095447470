// Tests that the portable client can be bundled for browsers without Node modules.
import { expect } from 'chai'
import { build } from 'esbuild'

it('bundles mcp-host/client for a browser without Node modules', async () => {
  const { outputFiles, warnings } = await build({
    entryPoints: ['client/index.ts'],
    bundle: true,
    write: false,
    minify: true,
    format: 'esm',
    platform: 'browser',
  })
  const [bundle] = outputFiles
  expect(warnings).to.deep.equal([])
  expect(bundle?.text).not.to.match(/from\s*["']node:/)
})
