// Adds a server to an existing package, by changes to its package.json and .gitignore.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { printable } from '../../client/text.ts'
import { editJson, writeConfig } from '../connect/write-config.ts'
import { readText, usage } from '../context.ts'
import { parseObject } from '../text.ts'
import { type NewFiles, writeNew } from './write-new.ts'

type Names = Readonly<Record<string, unknown>>

/** Files that are not replaced if they exist. */
const KEPT = ['README.md', 'tsconfig.json', '.env.example', '.gitignore', 'package.json']

/** Reads package.json in a folder; undefined without the file. Throws a StartError for invalid JSON. */
export function readManifest(folder: string): Names | undefined {
  const file = join(folder, 'package.json')
  if (!existsSync(file)) return undefined
  const manifest = parseObject(readText(file, printable(file)))
  if (!manifest) throw usage(`${printable(file)} is not a JSON object; nothing was written`)
  return manifest
}

/** Adds missing entries. A script whose name is taken gets the prefix `mcp:`. */
function addToManifest(text: string, own: Names, wanted: Names): readonly [after: string, added: string[]] {
  const isKnown = (section: string, name: string) => Object.hasOwn((own[section] ?? {}) as Names, name)
  const missing = ['scripts', 'dependencies', 'devDependencies'].flatMap(section =>
    Object.entries(wanted[section] as Names).flatMap(([name, value]) => {
      if (section === 'scripts') return [[section, isKnown(section, name) ? `mcp:${name}` : name, value] as const]
      return ['dependencies', 'devDependencies'].some(one => isKnown(one, name))
        ? []
        : [[section, name, value] as const]
    }),
  )
  const entries = missing.filter(([section, name]) => !isKnown(section, name))
  const after = entries.reduce((edited, [section, name, value]) => editJson(edited, [section, name], value), text)
  return [after, entries.map(([section, name, value]) => `package.json  ${section}.${name}: ${value}`)]
}

/** Prepares the changes to a package; `write` applies them. */
export function addToPackage(folder: string, manifest: Names, project: NewFiles) {
  const files = new Map([...project].filter(([path]) => !KEPT.includes(path) || !existsSync(join(folder, path))))
  const existingScripts = ['dev', 'test', 'check'].filter(name =>
    Object.hasOwn((manifest['scripts'] ?? {}) as Names, name),
  )
  const replaceIn = (path: string, from: string | RegExp, to: string) => {
    const text = files.get(path)
    if (text !== undefined) files.set(path, text.replace(from, to))
  }
  // With `nodenext`, TypeScript rejects `import` in a package without `"type": "module"`.
  if (manifest['type'] !== 'module') replaceIn('tsconfig.json', '"module": "nodenext"', '"module": "preserve"')
  for (const name of existingScripts)
    replaceIn('README.md', new RegExp(`npm (?:run )?${name}\\b`), `npm run mcp:${name}`)
  const edits: { file: string; before: string; after: string }[] = []
  const edit = (name: string, change: (text: string) => readonly [string, string[]]) => {
    const file = join(folder, name)
    if (!existsSync(file)) return []
    const before = readFileSync(file, 'utf8')
    const [after, added] = change(before)
    if (added.length > 0) edits.push({ file, before, after })
    return added
  }
  const wanted = parseObject(project.get('package.json')) ?? {}
  const changes = edit('package.json', text => addToManifest(text, manifest, wanted))
  const ignored = edit('.gitignore', text => {
    const lines = (project.get('.gitignore') ?? '').split('\n').filter(line => !text.split(/\r?\n/).includes(line))
    return [`${text.trimEnd()}\n${lines.join('\n')}\n`, lines.map(line => `.gitignore  ${line}`)]
  })
  return {
    files,
    hasExistingTest: existingScripts.includes('test'),
    keepsTsconfig: !files.has('tsconfig.json'),
    shown: [...[...files.keys()].map(path => `${path}  new file`), ...changes, ...ignored]
      .map(line => printable(`  + ${line}`))
      .join('\n'),
    async write(): Promise<string[]> {
      writeNew(folder, files)
      const backups: string[] = []
      for (const { file, before, after } of edits) backups.push((await writeConfig(file, before, after)) ?? file)
      return backups
    },
  }
}
