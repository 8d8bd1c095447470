// Tests loading config files: formats, file lookup and load errors.
import { execFile } from 'node:child_process'
import { chmod, cp, symlink, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { importModule } from '../../core/config/import-module.ts'
import { loadConfig } from '../../core/config/load-config.ts'
import { StartError } from '../../core/http/errors.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { compiledFile } from '../support/compiled.ts'
import { makeFolder, removeFolders } from './folder.ts'

const run = promisify(execFile)
const CORE = resolve(import.meta.dirname, '../../core')
const ROOT = resolve(CORE, '..')
const CONFIG = { server: { name: 'a', version: '1' }, toolsets: {}, routes: { '/': { toolsets: 'a' } } }
const BODY = JSON.stringify(CONFIG)

const YAML = 'server: { name: a, version: "1" }\ntoolsets: {}\nroutes:\n  /:\n    toolsets: a\n'

const FORMATS: Record<string, string> = {
  'mcp.config.ts': `const config: object = ${BODY}\nexport default config`,
  'mcp.config.mts': `export default ${BODY} satisfies object`,
  'mcp.config.js': `export default ${BODY}`,
  'mcp.config.mjs': `export default ${BODY}`,
  'mcp.config.cjs': `module.exports = ${BODY}`,
  'mcp.config.json': `\uFEFF${BODY}`,
  'mcp.config.yaml': YAML,
  'mcp.config.yml': YAML,
}

/** The message of the StartError that loading ends in. */
async function failure(files: Parameters<typeof makeFolder>[0], file?: string): Promise<string> {
  const cwd = await makeFolder(files)
  try {
    await loadConfig({ cwd, ...(file !== undefined && { file }) })
  } catch (error) {
    expect(error).to.be.instanceOf(StartError)
    expect(error).to.have.property('exitCode', 2)
    return (error as StartError).message.replaceAll(`${cwd}/`, '')
  }
  throw new Error('it loaded')
}

describe('loadConfig', () => {
  for (const [what, others] of [
    ['and no other', {}],
    ['and another that it may', { 'mcp.config.json': BODY }],
  ] as const) {
    it(`rejects a config without read permission, ${what}`, async () => {
      const cwd = await makeFolder({ 'mcp.config.mts': '', 'below/a.txt': '', ...others })
      await chmod(cwd, 0o755)
      await chmod(join(cwd, 'mcp.config.mts'), 0o000)
      const { geteuid, seteuid } = process
      const isRoot = geteuid?.() === 0
      // Root may read everything.
      if (isRoot) seteuid?.(65_534)
      try {
        const told = `${join(cwd, 'mcp.config.mts')}: cannot be read: EACCES`
        for (const folder of [cwd, join(cwd, 'below')]) {
          expect((await rejectionOf(loadConfig({ cwd: folder }))) as Error)
            .to.have.property('message')
            .that.contains(told)
        }
      } finally {
        if (isRoot) seteuid?.(0)
      }
    })
  }

  after(removeFolders)

  for (const [name, text] of Object.entries(FORMATS)) {
    it(`finds and reads ${name}`, async () => {
      const cwd = await makeFolder({ [name]: text })
      const loaded = await loadConfig({ cwd })
      expect(loaded.file).to.equal(join(cwd, name))
      expect(loaded.config).to.deep.equal(CONFIG)
    })
  }

  it('searches parent folders up to the nearest package.json', async () => {
    const cwd = await makeFolder({ 'mcp.config.json': BODY, 'deep/er/x.txt': '', 'other/package.json': '{}' })
    expect((await loadConfig({ cwd: join(cwd, 'deep/er') })).file).to.equal(join(cwd, 'mcp.config.json'))
    const above = await loadConfig({ cwd: join(cwd, 'other') }).catch(error => error)
    expect(above).to.be.instanceOf(StartError)
    expect(above.message).to.match(/^No config found in .*other.*Create mcp\.config\.ts.*--config/)
  })

  it('finds a config next to a package.json with a byte order mark', async () => {
    const cwd = await makeFolder({
      'mcp.config.json': BODY,
      'package.json': '\uFEFF{}',
      'below/package.json': '\uFEFF{}',
    })
    const before = process.cwd()
    process.chdir(cwd)
    try {
      expect((await loadConfig({ cwd })).file).to.equal(join(cwd, 'mcp.config.json'))
      expect(await rejectionOf(loadConfig({ cwd: join(cwd, 'below') }))).to.match(/No config found in/)
    } finally {
      process.chdir(before)
    }
  })

  it('resolves the given file relative to cwd', async () => {
    const cwd = await makeFolder({ 'mcp.config.json': '{}', 'sub/prod.yaml': YAML })
    const loaded = await loadConfig({ cwd, file: 'sub/prod.yaml' })
    expect(loaded.file).to.equal(join(cwd, 'sub/prod.yaml'))
    expect(loaded.config).to.deep.equal(CONFIG)
  })

  it('keeps a key named $import and drops $schema', async () => {
    const cwd = await makeFolder({ 'mcp.config.json': '{"$schema":"./x.json","$import":"./other.json"}' })
    expect((await loadConfig({ cwd })).config).to.deep.equal({ $import: './other.json' })
  })

  it('does not expand environment variables in JSON and YAML', async () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: what an operator might try
    const cwd = await makeFolder({ 'mcp.config.yaml': 'a: ${HOME}\nb: $HOME\n' })
    // biome-ignore lint/suspicious/noTemplateCurlyInString: what an operator might try
    expect((await loadConfig({ cwd })).config).to.deep.equal({ a: '${HOME}', b: '$HOME' })
  })

  describe('locations of keys', () => {
    it('are found in JSON indented with tabs', async () => {
      const cwd = await makeFolder({
        'mcp.config.json': '{\n\t"routes": {\n\t\t"/a": { "toolsets": ["x",\n\t\t\t"y"] }\n\t}\n}',
      })
      const { locate } = await loadConfig({ cwd })
      expect(locate(['routes', '/a'])).to.equal(3)
      expect(locate(['routes', '/a', 'toolsets', 1])).to.equal(4)
      expect(locate(['routes', '/b'])).to.equal(undefined)
    })

    it('are found in YAML through an alias', async () => {
      const text = 'plugins:\n  a: &one\n    path: /x\n  b: *one\n  401: 1\n'
      const { locate } = await loadConfig({ cwd: await makeFolder({ 'mcp.config.yaml': text }) })
      expect(locate(['plugins', 'b'])).to.equal(4)
      expect(locate(['plugins', 'b', 'path'])).to.equal(3)
      expect(locate(['plugins', '401'])).to.equal(5)
    })
  })

  describe('load errors', () => {
    it('report a missing file', async () => {
      expect(await failure({}, 'nope.ts')).to.match(/^nope\.ts.*--config$/)
    })

    it('report an unreadable file', async () => {
      expect(await failure({ 'dir.json/x': '' }, 'dir.json')).to.match(/^dir\.json: cannot be read: EISDIR/)
    })

    it('report an unsupported file type', async () => {
      expect(await failure({ 'mcp.toml': '' }, 'mcp.toml')).to.match(/^mcp\.toml.*\.yaml/)
    })

    it('report an empty file', async () => {
      expect(await failure({ 'mcp.config.yaml': ' \n' })).to.match(/^mcp\.config\.yaml/)
    })

    const faults: [string, string, RegExp][] = [
      ['mcp.config.json', '{\n  "a": 1\n  "b": 2\n}', /^mcp\.config\.json:3: not valid JSON: comma expected$/],
      ['mcp.config.json', '{\n  "a": [1,\n ]}', /:3: not valid JSON: value expected$/],
      ['mcp.config.json', '{}\n{}', /:2.*JSON/],
      ['mcp.config.yaml', 'a: 1\nb: [1\nc: 2', /^mcp\.config\.yaml:3: not valid YAML: Flow sequence/],
      ['mcp.config.yaml', 'a: 1\nb: !vault x', /:2: not valid YAML: Unresolved tag: !vault$/],
      ['mcp.config.yaml', 'a: 1\n---\nb: 1', /:2: not valid YAML: Source contains multiple documents/],
      ['mcp.config.yaml', 'a: *none', /: not valid YAML: Unresolved alias/],
      [
        'mcp.config.ts',
        'export default {\n  a: 1\n  b: 2,\n}',
        /^mcp\.config\.ts:3: cannot be loaded: Expected "}" but found "b"$/,
      ],
      [
        'mcp.config.mjs',
        'export default {\n  a: 1\n  b: 2 }',
        /^mcp\.config\.mjs:3: cannot be loaded: Unexpected identifier/,
      ],
      [
        'mcp.config.ts',
        '\nconst n: number = 1\nthrow new Error("boom")',
        /^mcp\.config\.ts:3: cannot be loaded: boom$/,
      ],
      ['mcp.config.cjs', '\nthrow new Error("boom")', /^mcp\.config\.cjs:2: cannot be loaded: boom$/],
    ]
    for (const [name, text, message] of faults) {
      it(`report ${name}: ${JSON.stringify(text)}`, async () => {
        expect(await failure({ [name]: text })).to.match(message)
      })
    }

    for (const name of ['mcp.config.json', 'mcp.config.yaml', 'mcp.config.ts', 'mcp.config.mjs']) {
      it(`report ${name} in UTF-16`, async () => {
        const text = `export default ${BODY}`
        const bigEndian = Buffer.from(`\uFEFF${text}`, 'utf16le').swap16()
        const message = `${name}: the file is UTF-16; save it as UTF-8`
        for (const bytes of [Buffer.from(`\uFEFF${text}`, 'utf16le'), Buffer.from(text, 'utf16le'), bigEndian]) {
          expect(await failure({ [name]: bytes })).to.equal(message)
          expect(await failure({ [name]: bytes }, name)).to.equal(message)
        }
      })
    }

    it('report an imported file in UTF-16', async () => {
      for (const extension of ['.ts', '.mjs']) {
        const imported = Buffer.from('\uFEFFexport const a = 1', 'utf16le')
        const files = {
          'mcp.config.ts': `import "./tool${extension}"\nexport default {}`,
          [`tool${extension}`]: imported,
        }
        expect(await failure(files)).to.equal(
          `tool${extension}: cannot be loaded: the file is UTF-16; save it as UTF-8`,
        )
      }
    })

    it('report a package.json that tsx cannot read', async function () {
      // A Node.js that strips types loads this config without tsx.
      if (Reflect.get(process.features, 'typescript')) this.skip()
      const files = { 'package.json': '{ "type": module }', 'mcp.config.ts': 'export default {}' }
      expect(await failure(files)).to.equal('mcp.config.ts: cannot be loaded: Error parsing: package.json')
    })

    it('name the line of an import that is not found', async () => {
      const files = {
        'mcp.config.ts': 'import "./packages/lib/index.ts"\nexport default {}',
        'packages/lib/package.json': '{"name":"lib","type":"module"}',
        'packages/lib/index.ts': '\nimport { part } from "@lib/part"\nexport const lib = part',
      }
      expect(await failure(files)).to.match(
        /^packages\/lib\/index\.ts:2: cannot be loaded: Cannot find package '@lib\/part' imported from /,
      )
    })

    it('name the imported file that makes a config fail', async () => {
      const files = { 'mcp.config.ts': 'import "./tool.ts"\nexport default {}', 'tool.ts': '\n\nconst = 1' }
      expect(await failure(files)).to.match(/^tool\.ts:3: /)
    })

    it('report a config that fails to read another file, without searching parent folders', async () => {
      const text = 'import { readFileSync } from "node:fs"\nexport default readFileSync("/nowhere/at/all")'
      expect(await failure({ 'mcp.config.ts': text })).to.match(/^mcp\.config\.ts:2: cannot be loaded: ENOENT/)
    })

    it('report top-level await in a CommonJS folder with a fix', async () => {
      const files = { 'package.json': '{}', 'mcp.config.ts': 'export default await Promise.resolve({})' }
      expect(await failure(files)).to.match(
        /^mcp\.config\.ts:1: cannot be loaded: Top-level await .*"type": "module".*\.mts/,
      )
    })

    it('report ES modules in a CommonJS folder with a fix', async () => {
      const cwd = await makeFolder({
        'mcp.config.yaml': YAML.replace('{}', '{ a: ./a.js, b: ./b.js }'),
        'package.json': '{ "type": "commonjs" }',
        'a.js': "import 'node:fs'\n",
        'b.js': 'export const list = []',
      })
      const env = { ...process.env, NODE_OPTIONS: '' }
      const { stderr } = (await rejectionOf(
        run(process.execPath, [compiledFile('cli/bin.ts'), 'check'], { cwd, env }),
      )) as unknown as { stderr: string }
      for (const name of ['a', 'b'])
        expect(stderr).to.match(
          new RegExp(`${name}\\.js:1: .*toolsets\\.${name} cannot be loaded: .*"type": "module".*\\.mjs`),
        )
    })

    it('do not quote broken JSON, which can contain secrets', async () => {
      expect(await failure({ 'mcp.config.json': '{"secrets": ["hunter2" "hunter3"]}' })).not.to.contain('hunter')
      expect(await failure({ 'mcp.config.yaml': 'secrets: ["hunter2" "hunter3"' })).not.to.contain('hunter')
    })
  })
})

const TOOLS = {
  'mcp.config.ts': `
    import { mark } from './tools/mark'
    import { defineConfig } from '${CORE}/index.ts'
    enum Port { Default = 3000 }
    export default defineConfig({ ...${BODY}, http: { port: Port.Default }, plugins: { x: { mark } } })`,
  'tools/mark.ts': 'export const mark: object = { made: Symbol("mark") }\nexport default mark',
}

const OWN = "export { importModule as own } from './dist/config/import-module.js'"

describe('importModule', () => {
  after(removeFolders)

  for (const [kind, manifest] of [
    ['an ESM package', '{"type":"module"}'],
    ['a package without "type": "module"', '{}'],
  ] as const) {
    it(`loads the same module instances for a config in ${kind} and its tools`, async () => {
      const cwd = await makeFolder({ ...TOOLS, 'package.json': manifest })
      const { config } = await loadConfig({ cwd })
      const { mark, default: byDefault } = await importModule(join(cwd, 'tools/mark.ts'))
      expect(config).to.have.nested.property('plugins.x.mark', mark)
      expect(byDefault).to.equal(mark)
      expect(config).to.have.nested.property('http.port', 3000)
    })
  }

  it('loads TypeScript from compiled code and shares modules, on plain Node.js and tsx', async () => {
    const cwd = await makeFolder({
      ...TOOLS,
      'cjs/package.json': '{}',
      'cjs/tool.ts': 'export const n: number = 7',
      'own.ts': OWN,
    })
    await symlink(join(ROOT, 'node_modules'), join(cwd, 'node_modules'))
    await cp(dirname(compiledFile('core/index.ts')), join(cwd, 'dist'), { recursive: true })
    const script = join(cwd, 'script.mjs')
    await writeFile(
      script,
      `import { importModule } from './dist/config/import-module.js'
       const { mark } = await importModule('${cwd}/tools/mark.ts')
       const config = await importModule('${cwd}/mcp.config.ts')
       const { n } = await importModule('${cwd}/cjs/tool.ts')
       const { own } = await importModule('${cwd}/own.ts')
       console.log(config.default.plugins.x.mark === mark, config.default.http.port, n, own === importModule)`,
    )
    const loader = pathToFileURL(join(ROOT, 'node_modules/tsx/dist/loader.mjs')).href
    const env = { ...process.env, NODE_OPTIONS: '' }
    expect((await run(process.execPath, [script], { env })).stdout).to.equal('true 3000 7 true\n')
    expect((await run(process.execPath, ['--import', loader, script], { env })).stdout).to.equal('true 3000 7 true\n')
  })
})
