// The portable client runs where there is no Node: it is bundled for browsers as it stands, and weighs little.
import { expect } from 'chai'
import { build } from 'esbuild'

it('mcp-host/client is bundled for a browser without anything of Node', async () => {
  const { outputFiles, warnings } = await build({
    entryPoints: ['client/index.ts'],
    bundle: true,
    write: false,
    minify: true,
    format: 'esm',
    platform: 'browser',
  })
  const [bundle] = outputFiles
  console.log(`      ${Math.round((bundle?.contents.length ?? 0) / 1024)} kB minified`)
  expect(warnings).to.deep.equal([])
  expect(bundle?.text).not.to.match(/from\s*["']node:/)
})
