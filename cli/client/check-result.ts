// Validates the result of a call against the output schema of its tool, in a thread that a hostile schema cannot outlive.
import { once } from 'node:events'
import type { CallToolResult, Tool } from '@modelcontextprotocol/client'
import { printable } from '../../client/text.ts'
import { errorText } from '../../core/http/errors.ts'
import { startThread } from '../../core/threads/start-thread.ts'
import type { CommandContext } from '../context.ts'

/** The input of the worker thread. */
export interface SchemaCheck {
  readonly schema: NonNullable<Tool['outputSchema']>
  readonly value: unknown
}

/** Milliseconds for the thread, and megabytes. */
const PATIENCE = 10_000
const MEMORY = 512
/** Characters of what does not match. */
const MAX_WORDS = 4_000

export interface CheckOptions {
  readonly signal: AbortSignal
  readonly context: Pick<CommandContext, 'say'>
  /** Milliseconds. */
  readonly patience?: number
}

/** Returns a message if the result does not match the schema. If the check fails or takes too long, a note is printed instead. */
export async function checkResult(
  { structuredContent: value, isError }: CallToolResult,
  schema: Tool['outputSchema'],
  { signal, context: { say }, patience = PATIENCE }: CheckOptions,
): Promise<string | undefined> {
  if (schema === undefined || isError) return undefined
  if (value === undefined) return 'the result has no structured content, which the output schema of the tool requires'
  const late = AbortSignal.timeout(patience)
  const worker = startThread('cli/client/thread/main', {
    workerData: { schema, value } satisfies SchemaCheck,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY },
    stdout: true,
    stderr: true,
  })
  let wrong: unknown
  try {
    ;[wrong] = await once(worker, 'message', { signal: AbortSignal.any([signal, late]) })
  } catch (error) {
    if (signal.aborted) throw signal.reason
    const why = late.aborted ? `it took more than ${patience / 1_000} s` : errorText(error)
    say(`note: the result was not checked against the tool's output schema: ${why}`)
    return undefined
  } finally {
    await worker.terminate()
  }
  if (wrong === undefined) return undefined
  return `the structured content does not match the tool's output schema: ${printable(String(wrong), MAX_WORDS)}`
}
