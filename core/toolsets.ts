// From the config's `toolsets` to definitions: inline ones, modules, globs of modules.
import { isAbsolute, resolve } from 'node:path'
import { glob, isDynamicPattern } from 'tinyglobby'
import { importModule } from './config/import-module.ts'
import { type Definition, kindOf } from './define.ts'
import type { ToolsetSource } from './define-config.ts'
import { errorText, StartError } from './errors.ts'

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

async function loadToolset(source: ToolsetSource, directory: string, where: string): Promise<Definition[]> {
  const entries = (Array.isArray(source) ? source : [source]) as ReadonlyArray<string | Definition>
  const loaded: Definition[] = []
  for (const entry of entries) {
    if (typeof entry !== 'string') loaded.push(entry)
    else for (const file of await filesOf(entry, directory, where)) loaded.push(...(await definitionsIn(file, where)))
  }
  return loaded
}

/**
 * Loads every toolset; paths are relative to `directory`. Throws a StartError for a file that is missing, throws, or
 * exports no definition, and for a glob that matches nothing.
 */
export async function loadToolsets(
  toolsets: Record<string, ToolsetSource>,
  directory: string,
): Promise<Map<string, Definition[]>> {
  const loaded = new Map<string, Definition[]>()
  for (const [name, source] of Object.entries(toolsets)) {
    loaded.set(name, await loadToolset(source, directory, `toolsets.${name}`))
  }
  return loaded
}
