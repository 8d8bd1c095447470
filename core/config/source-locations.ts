// The file and line of config keys and module definitions.
import { readFileSync } from 'node:fs'
import { type ConfigLocation, formatPath, type Path } from '../http/errors.ts'
import { type Definition, kindOf } from '../mcp/definitions/define.ts'
import { isObject } from '../mcp/wire/message.ts'
import { sourceOf } from './define-config.ts'
import type { LoadedConfig } from './load-config.ts'
import { type Locate, locateDefinition } from './locate-in-code.ts'
import type { SourceLocation } from './problems.ts'

type Source = Pick<LoadedConfig, 'file' | 'locate'>

export type SourceLocations = ReturnType<typeof createSourceLocations>

export function createSourceLocations(loaded: LoadedConfig) {
  const files = new WeakMap<object, { readonly file: string; readonly nth: number }>()
  const counts = new Map<string, number>()
  const texts = new Map<string, string>()
  const textOf = (file: string) => {
    const text = texts.get(file) ?? readFileSync(file, 'utf8')
    texts.set(file, text)
    return text
  }

  function sourceOf(definition: Definition): Source | undefined {
    const { file, nth } = files.get(definition) ?? {}
    if (file === undefined) return undefined
    return { file, locate: locateDefinition(textOf(file), `${kindOf(definition)}`, definition.name, nth) }
  }

  function locationInConfig(at: Path): SourceLocation {
    if (loaded.isInline) return {}
    const line = loaded.locate(at) ?? lineOfGeneralOptions(loaded, at) ?? lineOf(loaded, at)
    return { file: loaded.file, ...(line !== undefined && { line }) }
  }

  return {
    note(definition: Definition, file: string) {
      if (files.has(definition)) return
      const key = `${kindOf(definition)} ${definition.name} ${file}`
      const nth = counts.get(key) ?? 0
      counts.set(key, nth + 1)
      files.set(definition, { file, nth })
    },
    sourceOf,
    locationOf({ at, of }: ConfigLocation): SourceLocation & { path?: string } {
      const path = at && at.length > 0 ? { path: formatPath(at) } : {}
      if (!of) return at ? { ...locationInConfig(at), ...path } : {}
      const source = sourceOf(of as Definition)
      if (!source) {
        const inline = findInline(loaded.config, of)
        return inline
          ? { ...locationInConfig([...inline, ...(at ?? [])]), path: formatPath([...inline, ...(at ?? [])]) }
          : path
      }
      const line = lineOf(source, at ?? [], true)
      return { file: source.file, ...(line !== undefined && { line }), ...path }
    },
  }
}

function findInline(config: unknown, definition: object): Path | undefined {
  const toolsets = isObject(config) && isObject(config['toolsets']) ? config['toolsets'] : {}
  for (const [name, toolset] of Object.entries(toolsets)) {
    const source = sourceOf(toolset)
    const at = source === toolset ? ['toolsets', name] : ['toolsets', name, 'from']
    if (source === definition) return at
    const index = Array.isArray(source) ? source.indexOf(definition) : -1
    if (index !== -1) return [...at, index]
  }
  return undefined
}

function lineOfGeneralOptions({ locate }: Source, at: Path): number | undefined {
  return at[0] === 'routes' && at[2] === 'plugins' ? locate(at.slice(2)) : undefined
}

export function lineOf({ locate }: { locate: Locate }, path: Path, orWhole = path.length <= 1): number | undefined {
  for (let length = path.length; length > 0; length -= 1) {
    const line = locate(path.slice(0, length))
    if (line !== undefined) return line
  }
  // The whole config is a useful location only for missing top-level keys.
  return orWhole ? locate([]) : undefined
}
