// Tests the public exports of the package: number of names, unique entry points and doc comments.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { dirname, join as joinPosix } from 'node:path/posix'
import { expect } from 'chai'

const ROOT = join(import.meta.dirname, '..')
const MAX_NAMES = 115
/** The entries that re-export what lies on the floors, by what a stranger imports. */
const ENTRIES = {
  'mcp-host': 'core/index.ts',
  'mcp-host/plugin': 'core/plugin.ts',
  'mcp-host/testing': 'core/testing.ts',
}

const read = (file: string) => readFileSync(join(ROOT, file), 'utf8')

const REEXPORT = /^(?:ex|im)port (?:type )?\{([^}]*)\} from '(\.[^']*)'$/gm

/** Each name that a file re-exports or imports, with the file that has it. */
const namesOf = (file: string): Array<readonly [name: string, from: string]> =>
  [...read(file).matchAll(REEXPORT)].flatMap(([, list = '', specifier = '']) =>
    list
      .split(',')
      .map(name => name.trim().replace(/^type /, ''))
      .filter(name => name !== '')
      .map(name => [name, joinPosix(dirname(file), specifier)] as const),
  )

/** The text up to where a name is declared, in this file or where it has the name from. */
function beforeDeclaration(name: string, file: string): string {
  const text = read(file)
  const at = text.search(new RegExp(`^export (?:async )?(?:interface|type|const|function|class) ${name}\\b`, 'm'))
  if (at !== -1) return text.slice(0, at)
  const from = namesOf(file).find(([known]) => known === name)
  if (!from) throw new Error(`${name} is not declared in ${file}`)
  return beforeDeclaration(name, from[1])
}

describe('Public API exports', () => {
  const surface = Object.entries(ENTRIES).map(([entry, file]) => ({ entry, file, names: namesOf(file) }))

  it(`include fewer than ${MAX_NAMES} names in mcp-host, types counted`, () => {
    for (const { names } of surface) expect(names).to.not.have.lengthOf(0)
    expect(surface[0]?.names.length).to.be.below(MAX_NAMES)
  })

  it('are listed by name, without wildcard exports or own declarations', () => {
    for (const { file } of surface) {
      expect(
        read(file)
          .replaceAll(REEXPORT, '')
          .replaceAll(/^\/\/.*$/gm, '')
          .trim(),
        file,
      ).to.equal('')
    }
  })

  it('appear in one entry point only, except what configs with plugins of their own need', () => {
    const all = surface.flatMap(({ names }) => names.map(([name]) => name))
    const repeated = all.filter((name, index) => all.indexOf(name) !== index)
    expect(repeated.sort()).to.deep.equal(['HostError', 'StartError', 'definePlugin'])
  })

  it('have a doc comment each', () => {
    // What is generated from the config's schema says it of each key.
    const bare = surface
      .flatMap(({ names }) => names)
      .map(([name, file]) => ({ name, before: beforeDeclaration(name, file) }))
      .filter(({ before }) => !before.trimEnd().endsWith('*/') && !/^\/\/.*\bgenerated\b/.test(before))
    expect(bare.map(({ name }) => name)).to.deep.equal([])
  })

  it('match the exports of package.json and the paths of this repository', () => {
    const { exports } = JSON.parse(read('package.json')) as { exports: Record<string, { default: string }> }
    const { compilerOptions } = JSON.parse(read('tsconfig.json')) as {
      compilerOptions: { paths: Record<string, string[]> }
    }
    for (const { entry, file } of surface) {
      const built = `./dist/${file.replace('.ts', '')}`
      expect(exports[entry.replace('mcp-host', '.')]).to.deep.equal({ types: `${built}.d.ts`, default: `${built}.js` })
      expect(compilerOptions.paths[entry]).to.deep.equal([`./${file}`])
    }
  })
})
