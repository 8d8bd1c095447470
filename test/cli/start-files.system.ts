// Counts the files that startup reads, with the built package in a process of its own.
import { cp, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect } from 'chai'
import { bundlePackage } from '../../build/bundle-package.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { compiledFile } from '../support/compiled.ts'
import { startProgram } from './run-cli.ts'

const ROOT = join(import.meta.dirname, '../..')

/** Prints every file that is imported or required: READ before it says that it listens, LATER of those required by its end. */
const LISTING = `
import module from 'node:module'
const hooks = "import { writeSync } from 'node:fs'; export async function load(url, context, next) { if (url.startsWith('file:')) writeSync(1, 'READ ' + url + '\\\\n'); return next(url, context) }"
module.register('data:text/javascript,' + encodeURIComponent(hooks))
const { write } = process.stdout
const list = word => { for (const file of Object.keys(module._cache)) write.call(process.stdout, word + ' ' + file + '\\n') }
process.stdout.write = function (text, ...rest) {
  if (/^listening on/m.test(text)) list('READ')
  return write.call(this, text, ...rest)
}
process.on('exit', () => list('LATER'))
const look = setInterval(() => {
  if (!Object.keys(module._cache).some(file => file.includes('/node_modules/ajv/dist/2020'))) return
  clearInterval(look)
  write.call(process.stdout, 'AHEAD ajv\\n')
}, 10).unref()
`

const COMPILERS = ['tsx', 'esbuild', 'typescript']

const YAML = `server: { name: plain, version: 1.0.0 }
http: { port: 0 }
toolsets: { all: [] }
routes: { /mcp: { toolsets: all } }
plugins: { transport-streamable: {} }
`

const configOf = (input: string, index: string) => `import { defineTool } from '${index}'
const tools = Array.from({ length: 20 }, (_, at) => defineTool({ name: 'tool-' + at, ${input} handler: () => 'said' }))
export default { server: { name: 'plain', version: '1.0.0' }, http: { port: 0 }, toolsets: { all: tools },
  routes: { '/mcp': { toolsets: 'all' } }, plugins: { 'transport-streamable': {} } }`

describe('files that startup reads', () => {
  let main = ''
  let index = ''

  before(async () => {
    const folder = await makeFolder({})
    await cp(join(ROOT, 'package.json'), join(folder, 'package.json'))
    for (const part of ['core', 'plugins', 'client', 'remote', 'cli']) {
      await cp(join(compiledFile('core'), '..', part), join(folder, 'dist', part), { recursive: true })
    }
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    await bundlePackage(folder)
    main = join(folder, 'dist/cli/bin.js')
    index = pathToFileURL(join(folder, 'dist/core/index.js')).href
  })
  after(removeFolders)

  /** Starts it, stops it once `printed` matches, and returns the files that were read before it listened. */
  async function filesOf(
    name: string,
    input: string,
    named = ['--config', name],
    text = configOf(input, index),
    printed = /^listening on .*\n/m,
  ): Promise<string[]> {
    const folder = await makeFolder({ [name]: text, 'package.json': '{ "type": "module" }' })
    const listing = `--import=data:text/javascript,${encodeURIComponent(LISTING)}`
    const program = startProgram([process.execPath, listing, main, 'start', ...named], folder, {})
    await program.printed(printed)
    program.child.kill('SIGTERM')
    const { code, stdout, stderr } = await program.ended
    expect(code, stderr).to.equal(0)
    const [before = ''] = stdout.split(/^listening on/m)
    return [...new Set([...before.matchAll(/^READ (?:file:\/\/)?([^?\n]+)/gm)].map(([, file = '']) => file))]
  }

  const INPUT = "input: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },"
  const packagesIn = (files: readonly string[], names: readonly string[]) =>
    names.filter(name => among(files, `/node_modules/${name}/`) > 0)
  const among = (files: readonly string[], part: string) => files.filter(file => file.includes(part)).length

  it('are few, and none that a plain config does not need; those of the first call are loaded soon after', async () => {
    const ahead = /^listening on [\s\S]*^AHEAD ajv\n/m
    const files = await filesOf('mcp.config.mjs', INPUT, undefined, undefined, ahead)
    expect(files.length).to.be.within(50, 194)
    expect(among(files, '/dist/core/chunks/')).to.be.within(5, 82)
    expect(among(files, '/node_modules/ajv/')).to.equal(NAMED.length)
    const needless = [
      ...COMPILERS,
      '@koa/router',
      'redis',
      'yaml',
      'prom-client',
      'koa-body',
      'jsonwebtoken',
      'chokidar',
    ]
    expect(packagesIn(files, needless)).to.deep.equal([])
  })

  it('contain no compiler if the config is YAML and is searched for', async () => {
    const yaml = await filesOf('mcp.config.yaml', '', [], YAML)
    expect(packagesIn(yaml, ['yaml'])).to.deep.equal(['yaml'])
    expect(packagesIn(yaml, COMPILERS)).to.deep.equal([])
  })

  it('contain ajv only if a schema must be compiled, and tsx only if Node cannot run a TypeScript config', async () => {
    const input = INPUT.replace("type: 'string'", "type: 'string', nullable: true")
    const doubtful = await filesOf('mcp.config.mjs', input, [])
    expect(among(doubtful, '/node_modules/ajv/')).to.be.greaterThan(30)
    expect(packagesIn(doubtful, COMPILERS)).to.deep.equal([])
    const typed = await filesOf('mcp.config.ts', INPUT)
    const nodeStrips = Boolean(Reflect.get(process.features, 'typescript'))
    expect(packagesIn(typed, COMPILERS)).to.deep.equal(nodeStrips ? [] : ['tsx', 'esbuild'])
    expect(among(typed, '/node_modules/ajv/')).to.equal(NAMED.length)
  })
})

/** What built validators require of ajv: how to count characters, and to compare. */
const NAMED = ['ucs2length', 'equal']
