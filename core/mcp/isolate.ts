// Tools whose handlers run in threads of their own: the bounds that hold there, and the module that each tool comes from,
// which a thread imports once more.
import type { Definition, ToolDefinition } from './define.ts'
import { parseDuration, parseSize } from './units.ts'

/** What one tool may take in its thread. */
export interface IsolateBounds {
  /** Bytes that the thread may hold: heap and buffers. */
  readonly memory: number
  /** Milliseconds of computing that one call may use. */
  readonly cpuTime: number
  /** Threads, each of which runs one call at a time. */
  readonly threads: number
}

const MEGABYTE = 1_024 ** 2
/** What a thread holds before a tool does anything is a quarter of it. */
const LEAST_MEMORY = 64 * MEGABYTE
const DEFAULTS: IsolateBounds = { memory: 128 * MEGABYTE, cpuTime: 5_000, threads: 4 }

/** The bounds of a definition's `isolate`; undefined: it runs with the others. Throws where they cannot hold. */
export function isolateBounds(isolate: ToolDefinition['isolate']): IsolateBounds | undefined {
  if (isolate === undefined) return undefined
  if (isolate === true) return DEFAULTS
  const { memory, cpuTime, threads = DEFAULTS.threads } = isolate
  const bytes = memory === undefined ? DEFAULTS.memory : parseSize(memory)
  if (bytes < LEAST_MEMORY)
    throw new RangeError('its isolate.memory is less than 64mb, which a thread itself takes half of')
  const computing = cpuTime === undefined ? DEFAULTS.cpuTime : parseDuration(cpuTime)
  if (computing < 1) throw new RangeError('its isolate.cpuTime lets no call end; give it such as 5s')
  return { memory: bytes, cpuTime: computing, threads }
}

/** `128 MB`, `5 s`. */
export const sizeInWords = (bytes: number): string => `${Number((bytes / MEGABYTE).toFixed(1))} MB`
export const timeInWords = (ms: number): string => (ms < 1_000 ? `${ms} ms` : `${Number((ms / 1_000).toFixed(1))} s`)

export const boundsInWords = ({ memory, cpuTime }: IsolateBounds): string =>
  `which may hold ${sizeInWords(memory)}; a call may compute for ${timeInWords(cpuTime)}`

/** The narrower of both, where there are two. */
export function narrowerBounds(
  one: IsolateBounds | undefined,
  other: IsolateBounds | undefined,
): IsolateBounds | undefined {
  if (!one || !other) return one ?? other
  return {
    memory: Math.min(one.memory, other.memory),
    cpuTime: Math.min(one.cpuTime, other.cpuTime),
    threads: Math.min(one.threads, other.threads),
  }
}

/** Where a module exports a tool. */
export interface ModuleTool {
  /** Absolute. */
  readonly file: string
  /** What the module exported: another one for each version of it. */
  readonly exported: object
  readonly name: string
  /** In a list that is exported. */
  readonly index: number | undefined
}

const origins = new WeakMap<Definition, ModuleTool>()

/** Notes the module of each definition that it exports, alone or in a list. */
export function noteModule(file: string, exported: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(exported)) {
    const values = Array.isArray(value) ? value : [value]
    for (const [at, definition] of values.entries()) {
      if (typeof definition !== 'object' || definition === null || origins.has(definition)) continue
      origins.set(definition, { file, exported, name, index: Array.isArray(value) ? at : undefined })
    }
  }
}

/** Undefined: it is of no module that a toolset names. */
export const moduleOf = (definition: Definition): ModuleTool | undefined => origins.get(definition)

const ofPlugins = new WeakSet<Definition>()

/** Notes a definition that a plugin contributes: it is a part of the host, and no rule of an operator isolates it. */
export const notePluginOwn = (definition: Definition): void => void ofPlugins.add(definition)
export const isPluginOwn = (definition: Definition): boolean => ofPlugins.has(definition)

const NO_MODULE =
  'a thread must import it, so it cannot be written in the config or added at run time: ' +
  'export it from a module of its own, and name that file in a toolset'

/** Why a tool cannot run in a thread, or undefined. */
export function isolateFault(definition: ToolDefinition): string | undefined {
  const { task } = definition
  if (typeof task === 'object' && task.before) return 'its `task.before` runs in no thread; take out one of them'
  return moduleOf(definition) ? undefined : NO_MODULE
}
