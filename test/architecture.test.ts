// Tests the rules of the architecture page: imports between layers, total size and dependencies.
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect } from 'chai'
import { globSync } from 'tinyglobby'
import { updatePage } from '../build/write-dependencies.ts'
import { REVISIONS } from '../core/transport.ts'
import { builtInPlugins } from '../plugins/index.ts'
import {
  FAMILIES,
  type Import,
  mayImport,
  packageName,
  readImports,
  resolveImport,
  withoutComments,
} from './support/import-lines.ts'

const ROOT = join(import.meta.dirname, '..')
const FOLDERS = ['core', 'plugins', 'client', 'remote', 'cli', 'examples']
/** Maximum lines of whole parts of the product. Lower a limit after deletions; never raise one. */
const LINE_LIMITS = [
  { folders: ['core'], lines: 27_750 },
  { folders: ['core', 'plugins', 'cli', 'client'], lines: 74_400 },
  { folders: ['remote'], lines: 3_000 },
]
/** Code for upstream servers and documents, and the console, which the limits do not count. */
const GATEWAY =
  /^(?:cli\/console\.ts$|plugins\/(?:console|upstream|openapi|families\/(?:credentials|texts|upstream-calls))\/)/
/** The layers of core. A layer may import lower layers, which are earlier rows. Files of core itself may import all layers. */
const LAYERS = [['http', 'threads'], ['store'], ['kernel'], ['mcp'], ['sessions', 'access', 'config']]
/** Creates hosts, so it may import all of core. Only its entry, `core/testing.ts`, may import it. */
const TOP_LAYER = 'testing'

/** The page of the console runs in the browser and has its own rules. */
const PAGE = 'plugins/console/page'
const files = globSync(['mcp.config.example.ts', ...FOLDERS.map(folder => `${folder}/**/*.ts`)], {
  cwd: ROOT,
  ignore: `${PAGE}/**`,
}).sort()
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8')
const imports = new Map<string, Import[]>(files.map(file => [file, readImports(read(file))]))
const shipped = files.filter(file => /^(?:core|plugins|client|remote|cli)\//.test(file))

/** Whether one file of core may import another. */
function mayImportInCore(file: string, next: string): boolean {
  const [from, to] = [file, next].map(path => /^core\/([^/]+)\//.exec(path)?.[1])
  if (from === to || from === TOP_LAYER) return true
  if (to === TOP_LAYER) return file === `core/${TOP_LAYER}.ts`
  if (from === undefined) return true
  if (!next.startsWith('core/')) return true
  const layerOf = (folder: string) => LAYERS.findIndex(layer => layer.includes(folder))
  return to !== undefined && layerOf(to) < layerOf(from)
}

/** Each file with the files of ours that it imports. */
const graphOf = (counts: (imported: Import) => boolean): Map<string, string[]> =>
  new Map(
    [...imports].map(([file, list]) => [
      file,
      // Stylesheets are not modules.
      list
        .filter(counts)
        .flatMap(({ specifier }) => (specifier.endsWith('.css') ? [] : (resolveImport(file, specifier) ?? []))),
    ]),
  )

/** The files from a first one back to itself along these imports, or undefined. */
function findCycle(graph: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const done = new Set<string>()
  function visit(file: string, path: readonly string[]): string[] | undefined {
    const start = path.indexOf(file)
    if (start !== -1) return [...path.slice(start), file]
    if (done.has(file)) return undefined
    for (const next of graph.get(file) ?? []) {
      const cycle = visit(next, [...path, file])
      if (cycle) return cycle
    }
    done.add(file)
    return undefined
  }
  for (const file of graph.keys()) {
    const cycle = visit(file, [])
    if (cycle) return cycle
  }
  return undefined
}

/** The comment that a file opens with, after a `#!` line. */
const openingComment = (text: string): string => /^(?:#!.*\n)?((?:\/\/.*\n)*)/.exec(text)?.[1]?.trimEnd() ?? ''

describe('Rules of the architecture test', () => {
  it('detect every form of import and which imports are erased', () => {
    const source = [
      "import a from 'a'",
      "import { type B } from 'b'",
      'import {',
      '  c,',
      "} from './c.ts'",
      "import type { D } from 'd'",
      "export * from 'e'",
      "export type { F } from 'f'",
      "import 'g'",
      "const h = await import('h')",
      'const i = await import(url)',
      "// import j from 'j'",
      "/** import k from 'k' */",
      "export const text = ' from l'",
    ].join('\n')
    const seen = readImports(source).map(({ specifier, typeOnly }) => (typeOnly ? `type ${specifier}` : specifier))
    expect(seen.sort()).to.deep.equal(['./c.ts', '?', 'a', 'b', 'e', 'g', 'h', 'type d', 'type f'])
  })

  for (const [from, specifier, typeOnly = false] of [
    ['core/host.ts', '../plugins/index.ts'],
    ['core/host.ts', '../plugins/health/index.ts', true],
    ['core/config/define-config.ts', '../../plugins/index.ts', true],
    ['core/host.ts', '../client/index.ts'],
    ['core/host.ts', '../cli/main.ts'],
    ['core/host.ts', 'express'],
    ['core/mcp/wire/protocol.ts', '@modelcontextprotocol/server', true],
    ['core/mcp/definitions/catalog.ts', '?'],
    ['plugins/health/index.ts', '../../core/http/errors.ts', true],
    ['plugins/health/index.ts', '../transport-streamable/index.ts'],
    ['plugins/health/index.ts', '../families/redis/index.ts', true],
    ['plugins/cluster-redis/store.ts', '../families/redis/connection.ts'],
    ['plugins/cluster-redis/index.ts', '../store-sqlite/index.ts'],
    ['plugins/families/redis/connection.ts', '../../cluster-redis/index.ts', true],
    ['plugins/families/redis/connection.ts', '../../../core/kernel/log.ts', true],
    ['plugins/health/index.ts', '../../client/index.ts'],
    ['plugins/health/index.ts', 'mcp-host'],
    ['plugins/health/index.ts', '../../remote/connection.ts', true],
    ['core/host.ts', '../remote/index.ts', true],
    ['client/token.ts', '../remote/index.ts', true],
    ['remote/connection.ts', '../core/index.ts', true],
    ['remote/connection.ts', '../core/mcp/definitions/catalog.ts', true],
    ['remote/connection.ts', '../client/index.ts'],
    ['remote/connection.ts', '@modelcontextprotocol/client', true],
    ['client/token.ts', '../core/index.ts', true],
    ['client/token.ts', 'node:fs'],
    ['client/token.ts', './node/files.ts'],
    ['cli/main.ts', '../test/support/rpc.ts'],
    ['examples/clock/clock.ts', '../../core/index.ts', true],
  ] as const) {
    it(`forbid ${from} the import${typeOnly ? ' of a type' : ''} of ${specifier}`, () => {
      expect(mayImport(from, { specifier, typeOnly })).to.equal(false)
    })
  }

  for (const [file, next] of [
    ['core/kernel/order.ts', 'core/mcp/calls/call.ts'],
    ['core/mcp/calls/call.ts', 'core/sessions/session.ts'],
    ['core/access/authorize.ts', 'core/config/units.ts'],
    ['core/mcp/routes/view.ts', 'core/host.ts'],
    ['core/http/sse.ts', 'core/kernel/log.ts'],
    ['core/host.ts', 'core/testing/test-host.ts'],
  ] as const) {
    it(`detect that ${file} must not import ${next}`, () => expect(mayImportInCore(file, next)).to.equal(false))
  }

  it('detect a cycle', () => {
    const graph = new Map(Object.entries({ a: ['b'], b: ['c', 'd'], c: [], d: ['b'] }))
    expect(findCycle(graph)).to.deep.equal(['b', 'd', 'b'])
  })
})

describe('Source files', () => {
  it('are all found', () => {
    expect(files).to.include.members(['core/index.ts', 'core/config/load-config.ts', 'plugins/health/index.ts'])
    expect(files).to.include.members(['cli/main.ts', 'examples/clock/clock.ts', 'mcp.config.example.ts'])
  })

  it('import only what their folder allows', () => {
    const forbidden = [...imports].flatMap(([file, list]) =>
      list.filter(imported => !mayImport(file, imported)).map(({ specifier }) => `${file} imports ${specifier}`),
    )
    expect(forbidden).to.deep.equal([])
  })

  it('import existing files only and have no import cycles, type imports included', () => {
    const graph = graphOf(() => true)
    expect(files).to.include.members([...graph.values()].flat())
    expect(findCycle(graph)?.join(' -> ')).to.equal(undefined)
  })

  it('that add error kinds are loaded by each entry that publishes HostError', () => {
    const graph = graphOf(({ typeOnly }) => !typeOnly)
    const adding = shipped.filter(file => /^addErrorKinds\(/m.test(read(file)))
    expect(adding).to.have.length.of.at.least(2)
    for (const entry of ['core/index.ts', 'core/plugin.ts']) {
      const loaded = new Set([entry])
      for (const file of loaded) for (const next of graph.get(file) ?? []) loaded.add(next)
      expect([...loaded], entry).to.include.members(adding)
    }
  })

  it('of core import lower layers only, type imports included', () => {
    const upward = [...graphOf(() => true)].flatMap(([file, list]) =>
      list.filter(next => !mayImportInCore(file, next)).map(next => `${file} imports ${next}`),
    )
    expect(upward).to.deep.equal([])
    const folders = new Set(files.flatMap(file => /^core\/([^/]+)\//.exec(file)?.[1] ?? []))
    expect([...folders]).to.have.members([...LAYERS.flat(), TOP_LAYER])
  })

  for (const { folders, lines } of LINE_LIMITS) {
    it(`of ${folders.join(', ')} have at most ${lines} lines in total`, () => {
      const counted = shipped.filter(file => folders.includes(file.split('/', 1)[0] ?? '') && !GATEWAY.test(file))
      const total = counted.reduce((sum, file) => sum + read(file).split('\n').length - 1, 0)
      expect(total).to.be.within(1, lines)
    })
  }

  it('in plugins/ match the documented table and plugin families', () => {
    const folders = [...new Set(files.flatMap(file => /^plugins\/((?:families\/)?[^/]+)\//.exec(file)?.[1] ?? []))]
    // dev-auth-server is in the folder of auth-bridge, the other Redis plugins in that of cluster-redis.
    const own = Object.keys(builtInPlugins).filter(name => !/^dev-auth-server$|-(?:bus|store)-redis$/.test(name))
    expect(folders).to.have.members([...own, ...Object.keys(FAMILIES)])
    const users = Object.values(FAMILIES).flat()
    expect([...Object.keys(builtInPlugins), ...Object.keys(FAMILIES)]).to.include.members(users)
  })

  it('of the console page import only its own files, types of the API and the bundled packages', () => {
    const page = globSync(`${PAGE}/**/*.{ts,tsx}`, { cwd: ROOT })
    expect(page).to.include(`${PAGE}/main.tsx`)
    const packages = /^(?:preact|preact\/hooks|@preact\/signals|wouter-preact)$/
    const isAllowed = (file: string, { specifier }: Import) => {
      const target = resolveImport(file, specifier)
      if (target === undefined) return packages.test(specifier)
      return target.startsWith(`${PAGE}/`) || target === 'plugins/console/api.ts'
    }
    const forbidden = page.flatMap(file =>
      readImports(read(file)).flatMap(one => (isAllowed(file, one) ? [] : `${file} imports ${one.specifier}`)),
    )
    expect(forbidden).to.deep.equal([])
  })

  it('of core mention no plugin or database, comments included', () => {
    // A name of one word is a word of the field, too: only a message that tells how to enable it means the plugin.
    const names = Object.keys(builtInPlugins).map(name => (name.includes('-') ? name : `enable ${name}`))
    const naming = new RegExp(`\\b(?:${names.join('|')})\\b|redis`, 'gi')
    const told = files
      .filter(file => file.startsWith('core/') && !/\bgenerated\b/i.test(openingComment(read(file))))
      .flatMap(file => [...read(file).matchAll(naming)].map(([word]) => `${file}: ${word}`))
    expect(told).to.deep.equal([])
  })

  it('have no generic names: Manager, Service, Util, Helper', () => {
    expect(files.filter(file => /manager|service|util|helper/i.test(basename(file)))).to.deep.equal([])
  })

  it('name protocol versions in core/mcp/wire/revisions.ts only', () => {
    const named = files
      .filter(file => /^(?:core|plugins)\//.test(file) && file !== 'core/mcp/wire/revisions.ts')
      .filter(file => REVISIONS.some(revision => withoutComments(read(file)).includes(revision)))
    expect(named).to.deep.equal([])
    const comparing = files.filter(file => /[!=]== MODERN_REVISION|MODERN_REVISION [!=]==/.test(read(file)))
    expect(comparing).to.deep.equal([])
  })

  it('start with a comment on their responsibility', () => {
    expect(shipped.filter(file => openingComment(read(file)).length < 20)).to.deep.equal([])
  })
})

describe('Dependencies', () => {
  const { dependencies, devDependencies, peerDependencies } = JSON.parse(read('package.json')) as Record<
    string,
    Record<string, string>
  >
  const runtime = Object.keys(dependencies ?? {})
  const used = new Set(
    shipped.flatMap(file => imports.get(file) ?? []).flatMap(({ specifier }) => packageName(specifier) ?? []),
  )

  it('in package.json are each imported or provide types for our declarations', () => {
    const isUsed = (name: string) => used.has(name) || (name.startsWith('@types/') && used.has(name.slice(7)))
    expect(runtime.filter(name => name !== '@types/node' && !isUsed(name))).to.deep.equal([])
  })

  it('imported by the source are in dependencies or peerDependencies', () => {
    expect([...runtime, ...Object.keys(peerDependencies ?? {})]).to.include.members([...used])
  })

  it('are listed in docs/dependencies.md, each with a reason, as `npm run docs:dependencies` writes them', () => {
    const page = read('docs/dependencies.md')
    expect(updatePage(page)).to.equal(page)
    expect(page).not.to.match(/^- `.*: $/m)
  })

  it('run no install script but that of esbuild', () => {
    const { packages } = JSON.parse(read('package-lock.json'))
    const scripts = Object.keys(packages).filter(path => packages[path].hasInstallScript)
    expect(scripts).to.deep.equal(['node_modules/esbuild'])
  })

  it('that are optional are dev dependencies and loaded lazily, not at startup', () => {
    const optional = Object.keys(peerDependencies ?? {})
    expect(Object.keys(devDependencies ?? {})).to.include.members(optional)
    const behind = /^(?:plugins\/auth-bridge\/(?!index\.ts|set-up\.ts))|^cli\/init\/ask-choices\.ts$/
    const early = shipped
      .filter(file => !behind.test(file))
      .flatMap(file =>
        [...withoutComments(read(file)).matchAll(/^import (?!type )[^;]*? from '([^'.][^']*)'/gm)].map(
          ([, name = '']) => [file, name] as const,
        ),
      )
      .filter(([, name]) => optional.includes(packageName(name) ?? ''))
    expect(early.map(([file, name]) => `${file} imports ${name}`)).to.deep.equal([])
  })
})
