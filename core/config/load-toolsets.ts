// Loads the definitions of the config's `toolsets`: inline, modules and globs.
import { existsSync, statSync } from 'node:fs'
import { isAbsolute, resolve } from 'node:path'
import { type Path, StartError } from '../http/errors.ts'
import { type Definition, kindOf } from '../mcp/definitions/define.ts'
import { recordModule } from '../mcp/definitions/isolation-limits.ts'
import { didYouMean } from '../mcp/nearest.ts'
import { isObject } from '../mcp/wire/message.ts'
import { checkDefinition } from './check-config.ts'
import { explainNone, explainPlainObjects, type FindProblems } from './check-definition.ts'
import { hasSettings, sourceOf } from './define-config.ts'
import { resolvePackage } from './find-plugins.ts'
import { importModule } from './import-module.ts'
import { type Problem, type Problems, shortName } from './problems.ts'
import type { SourceLocations } from './source-locations.ts'

interface Loading {
  readonly directory: string
  readonly problems: Problems
  readonly locations: SourceLocations
  readonly findProblems: FindProblems
}

const MAY_BE_GLOB = /[*?[\]{}()!+@|\\]/

async function packageEntry(source: string, directory: string): Promise<string | undefined> {
  if (source.startsWith('.') || isAbsolute(source)) return undefined
  const file = await resolvePackage(source, directory).catch(() => undefined)
  return file !== undefined && existsSync(file) ? file : undefined
}

async function filesOf(source: string, at: Path, { directory, problems }: Loading): Promise<string[]> {
  const stop = (why: string) => problems.report(new StartError('MH1101', why, { at }))
  const globs = MAY_BE_GLOB.test(source) ? await import('tinyglobby') : undefined
  if (!globs?.isDynamicPattern(source)) {
    const file = isAbsolute(source) ? source : resolve(directory, source)
    const found = statSync(file, { throwIfNoEntry: false })
    if (found?.isDirectory()) {
      const folder = source.replace(/\/+$/, '')
      stop(`${shortName(file)} is a folder; name its files: ${folder}/*.ts, or ${folder}/*.js`)
      return []
    }
    if (found) return [file]
    const entry = await packageEntry(source, directory)
    if (entry !== undefined) return [entry]
    const { nearestFile } = await import('./explain-import.ts')
    const isPackage = source.startsWith('@')
    if (isPackage) stop(`there is no package ${source}; run: npm install ${source.split('/', 2).join('/')}`)
    else stop(`the file does not exist: ${shortName(file)}${nearestFile(file, source)}`)
    return []
  }
  const files = await globs.glob(source, { cwd: directory, absolute: true })
  if (files.length === 0) stop(`no file matches ${source} in ${directory}`)
  return files.sort()
}

async function definitionsIn(file: string, at: Path, { problems }: Loading): Promise<Definition[]> {
  let exported: Record<string, unknown>
  try {
    exported = await importModule(file)
  } catch (cause) {
    const { explainImport } = await import('./explain-import.ts')
    problems.add([explainImport(file, cause, at)])
    return []
  }
  recordModule(file, exported)
  const values = Object.values(exported).flatMap(value => (Array.isArray(value) ? value : [value]))
  const definitions = [...new Set(values)].filter((value): value is Definition => kindOf(value) !== undefined)
  const module = { file, exported, at }
  const plainObjects = explainPlainObjects(module)
  if (definitions.length > 0) for (const mistake of plainObjects) problems.warn(mistake)
  else problems.add(plainObjects.length > 0 ? plainObjects : [explainNone(module)])
  return definitions
}

function validDefinitionsIn(
  file: string,
  definitions: readonly Definition[],
  { problems, locations, findProblems }: Loading,
): Definition[] {
  for (const definition of definitions) locations.note(definition, file)
  return definitions.filter(definition => {
    // Lines are located lazily, because only faulty definitions need them.
    const source = { file, locate: (path: Path) => locations.sourceOf(definition)?.locate(path) }
    const found: Problem[] = checkDefinition(source, [], definition, findProblems)
    problems.add(found)
    return found.length === 0
  })
}

const NO_DEFINITION = 'not a definition; make it with defineTool, defineResource or definePrompt'

const SETTINGS = ['from', 'internal']

async function loadToolset(toolset: unknown, whole: Path, loading: Loading): Promise<Definition[]> {
  const definitions: Definition[] = []
  const source = sourceOf(toolset)
  const at = source === toolset ? whole : [...whole, 'from']
  if (hasSettings(toolset)) {
    for (const key of Object.keys(toolset)) {
      if (SETTINGS.includes(key)) continue
      loading.problems.report(
        new StartError('MH1011', `unknown key; ${didYouMean(key, SETTINGS)}`, { at: [...whole, key] }),
      )
    }
    if (typeof (toolset['internal'] ?? false) !== 'boolean') {
      loading.problems.report(new StartError('MH1013', 'must be true or false', { at: [...whole, 'internal'] }))
    }
  }
  const entries = Array.isArray(source) ? source : [source]
  for (const [index, entry] of entries.entries()) {
    const place = Array.isArray(source) ? [...at, index] : at
    if (kindOf(entry) !== undefined) definitions.push(entry)
    else if (isObject(entry) || entry === null)
      loading.problems.report(new StartError('MH1102', NO_DEFINITION, { at: place }))
    if (typeof entry !== 'string') continue
    for (const file of await filesOf(entry, place, loading)) {
      definitions.push(...validDefinitionsIn(file, await definitionsIn(file, place, loading), loading))
    }
  }
  return definitions
}

export async function loadToolsets(toolsets: unknown, loading: Loading): Promise<Map<string, Definition[]>> {
  const loaded = new Map<string, Definition[]>()
  for (const [name, source] of Object.entries(isObject(toolsets) ? toolsets : {})) {
    loaded.set(name, await loadToolset(source, ['toolsets', name], loading))
  }
  return loaded
}
