// Tests the public exports of the package: number of names, unique entry points and doc comments.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { dirname, join as joinPosix } from 'node:path/posix'
import { expect } from 'chai'

const ROOT = join(import.meta.dirname, '..')
/** Limits for published names, types included. Lower one after names are removed; never raise one. */
const MAX_NAMES = { 'mcp-host/plugin': 64, 'mcp-host': 100, 'all entries': 200 }

/** Members of the argument of `setup`, with the slots that plugins can provide. Never raise it. */
const MAX_MEMBERS = 30

const read = (file: string) => readFileSync(join(ROOT, file), 'utf8')

const REEXPORT = /^(?:ex|im)port (?:type )?\{([^}]*)\} from '(\.[^']*)'$/gm

const DECLARATION = /^export (?:async )?(?:interface|type|const|function|class) (\w+)/gm

/** Each name that a file re-exports or imports, with the file that has it. */
const namesOf = (file: string): Array<readonly [name: string, from: string]> =>
  [...read(file).matchAll(REEXPORT)].flatMap(([, list = '', specifier = '']) =>
    list
      .split(',')
      .map(name => name.trim().replace(/^type /, ''))
      .filter(name => name !== '')
      .map(name => [name, joinPosix(dirname(file), specifier)] as const),
  )

/** Each name that an entry publishes, with the file that declares or re-exports the name. */
const publishedBy = (file: string): Array<readonly [name: string, from: string]> => {
  const text = read(file)
  const exported = new Set([...text.matchAll(REEXPORT)].flatMap(([all]) => (all.startsWith('export') ? [all] : [])))
  return [
    ...namesOf(file).filter(([name]) => [...exported].some(list => new RegExp(`\\b${name}\\b`).test(list))),
    ...[...text.matchAll(DECLARATION)].map(([, name = '']) => [name, file] as const),
  ]
}

/** The text up to where a name is declared, in this file or where it has the name from. */
function beforeDeclaration(name: string, file: string): string {
  const text = read(file)
  const at = text.search(new RegExp(`^export (?:async )?(?:interface|type|const|function|class) ${name}\\b`, 'm'))
  if (at !== -1) return text.slice(0, at)
  const from = namesOf(file).find(([known]) => known === name)
  if (!from) throw new Error(`${name} is not declared in ${file}`)
  return beforeDeclaration(name, from[1])
}

/** The entries of package.json with their sources, by what users import. */
function readEntries(): Record<string, string> {
  const { exports } = JSON.parse(read('package.json')) as { exports: Record<string, string | { types: string }> }
  return Object.fromEntries(
    Object.entries(exports).flatMap(([entry, paths]) =>
      typeof paths === 'string'
        ? []
        : [[joinPosix('mcp-host', entry), paths.types.replace('./dist/', '').replace('.d.ts', '.ts')]],
    ),
  )
}

describe('Public API exports', () => {
  const entries = readEntries()
  const surface = Object.entries(entries).map(([entry, file]) => ({ entry, file, names: publishedBy(file) }))
  const ofCore = surface.filter(({ file }) => file.startsWith('core/'))

  it('stay below the limits for mcp-host and for all entries, types included', () => {
    for (const { entry, names } of surface) expect(names, entry).to.not.have.lengthOf(0)
    expect(surface.find(({ entry }) => entry === 'mcp-host')?.names.length).to.be.below(MAX_NAMES['mcp-host'])
    expect(surface.find(({ entry }) => entry === 'mcp-host/plugin')?.names.length).to.be.at.most(
      MAX_NAMES['mcp-host/plugin'],
    )
    expect(surface.flatMap(({ names }) => names).length).to.be.below(MAX_NAMES['all entries'])
  })

  it('of core are listed by name, without wildcard exports or own declarations', () => {
    for (const { file } of ofCore) {
      expect(
        read(file)
          .replaceAll(REEXPORT, '')
          .replaceAll(/^\/\/.*$/gm, '')
          .trim(),
        file,
      ).to.equal('')
    }
  })

  it('of core appear in one entry point only, except what configs with their own plugins need', () => {
    const all = ofCore.flatMap(({ names }) => names.map(([name]) => name))
    const repeated = all.filter((name, index) => all.indexOf(name) !== index)
    expect(repeated.sort()).to.deep.equal(['HostError', 'PluginFactory', 'StartError', 'definePlugin'])
  })

  it('have a doc comment each', () => {
    const bare = surface
      .flatMap(({ names }) => names)
      .map(([name, file]) => ({ name, before: beforeDeclaration(name, file) }))
      // The types that are generated from the config schema have comments on each key.
      .filter(({ before }) => !before.trimEnd().endsWith('*/') && !/^\/\/.*\bgenerated\b/.test(before))
    expect(bare.map(({ name }) => name)).to.deep.equal([])
  })

  it('match the exports of package.json and the paths of this repository', () => {
    const { exports } = JSON.parse(read('package.json')) as { exports: Record<string, object> }
    const { compilerOptions } = JSON.parse(read('tsconfig.json')) as {
      compilerOptions: { paths: Record<string, string[]> }
    }
    for (const { entry, file } of surface) {
      const built = `./dist/${file.replace('.ts', '')}`
      expect(exports[entry.replace('mcp-host', '.')]).to.include({ types: `${built}.d.ts`, default: `${built}.js` })
      expect(compilerOptions.paths[entry]).to.deep.equal([`./${file}`])
    }
  })
})

describe('The published plugin host', () => {
  /** The members of an interface, or the keys of a picked type. */
  function membersOf(file: string, name: string): string[] {
    const text = read(file)
    const picked = new RegExp(`^export type ${name} = Pick<\\w+, ([^>]*)>`, 'm').exec(text)?.[1]
    if (picked !== undefined) return picked.split('|').map(key => key.trim())
    const body = new RegExp(`^export interface ${name}\\b[^{]*\\{\\n([\\s\\S]*?)^\\}`, 'm').exec(text)?.[1] ?? ''
    return [...body.matchAll(/^ {2}(?:readonly )?(\w+)\??[<(:]/gm)].map(([, member = '']) => member)
  }

  it(`has at most ${MAX_MEMBERS} members and slots`, () => {
    const members = [
      membersOf('core/kernel/kernel-host.ts', 'KernelHost'),
      membersOf('core/mcp/mcp-plugin-host.ts', 'McpPluginHost'),
      membersOf('core/sessions/connect-client.ts', 'Connector'),
      membersOf('core/slots.ts', 'PublishedSlots'),
    ]
    for (const part of members) expect(part).to.not.have.lengthOf(0)
    expect(members.flat().length, members.flat().join(', ')).to.be.at.most(MAX_MEMBERS)
  })
})
