// Isolated tools: the limits of their worker processes, and the module of each tool.

import { parseDuration, parseSize } from '../units.ts'
import type { Definition, ToolDefinition } from './define.ts'

export interface IsolationLimits {
  /** Bytes of heap and buffers. */
  readonly memory: number
  /** CPU time per call, milliseconds. */
  readonly cpuTime: number
  readonly processes: number
}

const MEGABYTE = 1_024 ** 2
/** Minimum memory, bytes: loading a module and its imports can take half of it. */
const MIN_MEMORY = 64 * MEGABYTE
const DEFAULTS: IsolationLimits = { memory: 128 * MEGABYTE, cpuTime: 5_000, processes: 4 }

export function resolveIsolate(isolate: ToolDefinition['isolate']): IsolationLimits | undefined {
  if (isolate === undefined) return undefined
  if (isolate === true) return DEFAULTS
  const { memory, cpuTime, processes = DEFAULTS.processes } = isolate
  const bytes = memory === undefined ? DEFAULTS.memory : parseSize(memory)
  if (bytes < MIN_MEMORY) throw new RangeError('its isolate.memory is less than 64mb')
  const computing = cpuTime === undefined ? DEFAULTS.cpuTime : parseDuration(cpuTime)
  if (computing < 1) throw new RangeError('its isolate.cpuTime is too short for any call; use a value such as 5s')
  return { memory: bytes, cpuTime: computing, processes }
}

/** Formats the limits: `128 MB of memory`, `5 s of CPU time`. */
export const describeIsolationLimits = ({ memory, cpuTime }: IsolationLimits) => ({
  memory: `${Number((memory / MEGABYTE).toFixed(1))} MB of memory`,
  cpuTime: `${cpuTime < 1_000 ? `${cpuTime} ms` : `${Number((cpuTime / 1_000).toFixed(1))} s`} of CPU time`,
})

export function stricterLimits(
  one: IsolationLimits | undefined,
  other: IsolationLimits | undefined,
): IsolationLimits | undefined {
  if (!one || !other) return one ?? other
  return {
    memory: Math.min(one.memory, other.memory),
    cpuTime: Math.min(one.cpuTime, other.cpuTime),
    processes: Math.min(one.processes, other.processes),
  }
}

export interface ModuleTool {
  readonly file: string
  readonly exported: object
  readonly name: string
  readonly index: number | undefined
}

const origins = new WeakMap<Definition, ModuleTool>()

export function recordModule(file: string, exported: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(exported)) {
    const values = Array.isArray(value) ? value : [value]
    for (const [at, definition] of values.entries()) {
      if (typeof definition !== 'object' || definition === null || origins.has(definition)) continue
      origins.set(definition, { file, exported, name, index: Array.isArray(value) ? at : undefined })
    }
  }
}

export const moduleOf = (definition: Definition): ModuleTool | undefined => origins.get(definition)

const ofPlugins = new WeakSet<Definition>()

/** Marks a definition as created by a plugin, so that `tools.limits` does not isolate it. */
export const markPluginTool = (definition: Definition): void => void ofPlugins.add(definition)
export const isPluginTool = (definition: Definition): boolean => ofPlugins.has(definition)

const NO_MODULE =
  'a worker process must import it, so it cannot be written in the config or added at run time: ' +
  'export it from a separate module, and use that file in a toolset'

export const isolateError = (definition: ToolDefinition): string | undefined =>
  moduleOf(definition) ? undefined : NO_MODULE
