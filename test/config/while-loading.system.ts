// Tests modules that never finish during loading, at startup.
import { expect } from 'chai'
import { runCli } from '../cli/run-cli.ts'
import { makeFolder, removeFolders } from './folder.ts'

const CONFIG = `export default {
  server: { name: 'loaded', version: '1.0.0' }, http: { port: 0 },
  toolsets: { all: './tools/*.ts' }, routes: { '/': { toolsets: 'all' } }, plugins: { 'transport-streamable': {} },
}`
const HANGS = 'await new Promise(() => {})\n'

describe('Module that never finishes loading', () => {
  after(removeFolders)

  for (const [what, files] of [
    ['a tool', { 'mcp.config.ts': CONFIG, 'tools/say.ts': HANGS }],
    ['the config', { 'mcp.config.mjs': HANGS }],
  ] as const) {
    it(`fails \`check\` immediately: ${what}`, async () => {
      const { code, stdout, stderr } = await runCli(['check'], await makeFolder(files))
      expect([code, stdout]).to.deep.equal([1, ''])
      expect(stderr).to.match(/error MH3010.*top-level/s)
    })
  }
})
