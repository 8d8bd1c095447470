// Why a thread was ended, in words: for the model, and for whoever reads the log.

import { type IsolateBounds, sizeInWords, timeInWords } from '../mcp/isolate.ts'
import { ToolError } from '../mcp/tool-error.ts'

export type Over = 'memory' | 'cpuTime' | 'stopped'

/** For the log: what happened, to which tool. */
export interface Ended {
  readonly tool: string
  readonly over: Over | 'kept' | 'uncaught' | 'unloadable'
  /** Bytes, or milliseconds. */
  readonly bound?: number
  readonly thrown?: unknown
}

interface EndOfCall {
  readonly error: Error
  /** Undefined: the log says it as it says what handlers throw. */
  readonly told?: Ended
}

/** `cause`: what the thread failed with, or the code that it exited with. */
export function endedBy(tool: string, bounds: IsolateBounds, over: Over | undefined, cause: Error | number): EndOfCall {
  const isOutOfMemory = typeof cause === 'object' && 'code' in cause && cause.code === 'ERR_WORKER_OUT_OF_MEMORY'
  if (over === 'cpuTime') {
    const what = `${tool} used more than ${timeInWords(bounds.cpuTime)} of CPU time and was ended`
    return { error: new ToolError(what), told: { tool, over, bound: bounds.cpuTime } }
  }
  if (over === 'memory' || isOutOfMemory) {
    const what = `${tool} used more than ${sizeInWords(bounds.memory)} of memory and was ended`
    return { error: new ToolError(what), told: { tool, over: 'memory', bound: bounds.memory } }
  }
  if (over === 'stopped') {
    return { error: new ToolError(`${tool} went on when its call was over, and was ended`), told: { tool, over } }
  }
  if (typeof cause === 'object') return { error: cause }
  const error = new Error(`${tool} ended its thread by process.exit(${cause}): throw an error instead`)
  error.stack = `${error.name}: ${error.message}`
  return { error }
}
