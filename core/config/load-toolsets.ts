// From the config's `toolsets` to definitions: inline ones, modules, globs of modules.
import { readFileSync } from 'node:fs'
import { isAbsolute, resolve } from 'node:path'
import { glob, isDynamicPattern } from 'tinyglobby'
import { errorText, StartError } from '../http/errors.ts'
import { type Definition, kindOf } from '../mcp/define.ts'
import { assertNoProblems, checkDefinition, type Problem } from './check-config.ts'
import { findFaults } from './check-definition.ts'
import type { ToolsetSource } from './define-config.ts'
import { importModule } from './import-module.ts'
import { locateDefinition } from './locate-in-code.ts'

async function filesOf(source: string, directory: string, where: string): Promise<string[]> {
  if (!isDynamicPattern(source)) return [isAbsolute(source) ? source : resolve(directory, source)]
  const files = await glob(source, { cwd: directory, absolute: true })
  if (files.length === 0) throw new StartError(`${where}: no file matches ${source} in ${directory}`, { exitCode: 2 })
  return files.sort()
}

async function definitionsIn(file: string, where: string): Promise<Definition[]> {
  let exported: Record<string, unknown>
  try {
    exported = await importModule(file)
  } catch (cause) {
    throw new StartError(`${where}: ${file} cannot be loaded: ${errorText(cause)}`, { cause, exitCode: 2 })
  }
  const values = Object.values(exported).flatMap(value => (Array.isArray(value) ? value : [value]))
  const definitions = [...new Set(values)].filter((value): value is Definition => kindOf(value) !== undefined)
  if (definitions.length === 0) {
    const how = 'export what defineTool, defineResource or definePrompt return'
    throw new StartError(`${where}: ${file} exports no definition; ${how}`, { exitCode: 2 })
  }
  return definitions
}

/** What is wrong with the definitions of a module, with the lines of those that are written out in it. */
function problemsIn(file: string, definitions: readonly Definition[]): Problem[] {
  const faulty = definitions.filter(definition => findFaults(definition).length > 0)
  if (faulty.length === 0) return []
  const source = readFileSync(file, 'utf8')
  return faulty.flatMap(definition => {
    const locate = locateDefinition(source, `${kindOf(definition)}`, definition.name)
    return checkDefinition({ file, locate }, [], definition)
  })
}

interface LoadedToolset {
  readonly definitions: Definition[]
  readonly problems: Problem[]
}

async function loadToolset(source: ToolsetSource, directory: string, where: string): Promise<LoadedToolset> {
  const entries = (Array.isArray(source) ? source : [source]) as ReadonlyArray<string | Definition>
  const loaded: LoadedToolset = { definitions: [], problems: [] }
  for (const entry of entries) {
    if (typeof entry !== 'string') {
      loaded.definitions.push(entry)
      continue
    }
    for (const file of await filesOf(entry, directory, where)) {
      const definitions = await definitionsIn(file, where)
      loaded.definitions.push(...definitions)
      loaded.problems.push(...problemsIn(file, definitions))
    }
  }
  return loaded
}

/**
 * Loads every toolset; paths are relative to `directory`. Throws a StartError for a file that is missing, throws, or
 * exports no definition, for a glob that matches nothing, and for definitions in modules whose keys are wrong: all of
 * those at once, with lines.
 */
export async function loadToolsets(
  toolsets: Record<string, ToolsetSource>,
  directory: string,
): Promise<Map<string, Definition[]>> {
  const loaded = new Map<string, Definition[]>()
  const problems = new Map<string, Problem>()
  for (const [name, source] of Object.entries(toolsets)) {
    const toolset = await loadToolset(source, directory, `toolsets.${name}`)
    loaded.set(name, toolset.definitions)
    // A module that two toolsets name is wrong once.
    for (const problem of toolset.problems) problems.set(`${problem.file} ${problem.path}`, problem)
  }
  assertNoProblems([...problems.values()])
  return loaded
}
