// Reads a document. A worker thread reads large documents, so that they do not block calls and their memory is freed afterwards.
import { on } from 'node:events'
import { deserialize } from 'node:v8'
import { errorText } from '../../core/plugin.ts'
import { startThread } from '../../core/transport.ts'
import { LoadError } from './document/load.ts'
import type { Source } from './options.ts'
import {
  loadMain,
  type ReadDocument,
  type ReadFailure,
  type ReadSettings,
  readSummary,
  type Summary,
} from './read-api.ts'

/** Bytes of a large document. Reading this size takes 50 ms as JSON, 250 ms as YAML. */
const LARGE = 512 * 1_024
/** Maximum heap of the thread, megabytes. A YAML document requires 50 times its size. */
const MEMORY = 2_048

/** `workerData` of the thread. */
export interface ThreadData {
  readonly source: Source
  readonly directory: string
  readonly main: Uint8Array
}

/** A request of the thread for an overlay or for a document that a `$ref` names. */
export interface LoadRequest {
  readonly load: readonly [url: string, name: string, limit: number]
}

/** The contents, or the message of a LoadError. */
export type LoadResponse = Uint8Array | string

type FromThread = LoadRequest | Summary | ReadFailure

interface Settings extends ReadSettings {
  readonly signal: AbortSignal
}

export async function readDocument(source: Source, settings: Settings): Promise<ReadDocument | ReadFailure> {
  try {
    const main = await loadMain(source, settings)
    const result = await (main.length < LARGE
      ? readSummary(source, { ...settings, main })
      : readInThread(source, settings, main))
    return 'code' in result ? result : { ...deserialize(result.bytes), digest: result.digest }
  } catch (error) {
    if (error instanceof LoadError) return { code: 'MH3401', text: error.message }
    throw error
  }
}

async function readInThread(
  source: Source,
  { directory, load, signal }: Settings,
  main: Uint8Array,
): Promise<Summary | ReadFailure> {
  signal.throwIfAborted()
  const worker = startThread('plugins/openapi/thread/main', {
    workerData: { source: withoutSecrets(source), directory, main } satisfies ThreadData,
    transferList: [main.buffer as ArrayBuffer],
    resourceLimits: { maxOldGenerationSizeMb: MEMORY },
    name: 'openapi',
  })
  const respond = async ([url, name, limit]: LoadRequest['load']) => {
    const response: LoadResponse = await load(new URL(url), name, limit).catch(errorText)
    worker.postMessage(response)
  }
  try {
    for await (const [message] of on(worker, 'message', { signal, close: ['exit'] }) as AsyncIterable<[FromThread]>) {
      if (!('load' in message)) return message
      void respond(message.load)
    }
    throw new Error('the worker thread ended')
  } catch (error) {
    signal.throwIfAborted()
    const isFull = (error as NodeJS.ErrnoException).code === 'ERR_WORKER_OUT_OF_MEMORY'
    throw new LoadError(
      `cannot read ${source.document}: ${isFull ? 'it requires too much memory' : errorText(error)}`,
      { cause: error },
    )
  } finally {
    void worker.terminate()
  }
}

/** Removes secrets, because functions cannot be sent to a thread. The tools depend on the names of headers, not on values. */
function withoutSecrets({ credentials: _, auth: __, headers = {}, ...source }: Source): Source {
  return { ...source, headers: Object.fromEntries(Object.keys(headers).map(name => [name, ''])) }
}
