// Reads one large document in a worker thread, then ends.
import { once } from 'node:events'
import { parentPort, workerData } from 'node:worker_threads'
import { type Load, LoadError } from '../document/load.ts'
import { readSummary } from '../read-api.ts'
import type { LoadRequest, LoadResponse, ThreadData } from '../read-document.ts'

const { source, directory, main } = workerData as ThreadData
if (!parentPort) throw new Error('this file must run in a worker thread')
const port = parentPort

const load: Load = async (url, name, limit) => {
  port.postMessage({ load: [url.href, name, limit] } satisfies LoadRequest)
  const [response] = (await once(port, 'message')) as [LoadResponse]
  if (typeof response === 'string') throw new LoadError(response)
  return response
}

const result = await readSummary(source, { directory, load, main })
port.postMessage(result, 'bytes' in result ? [result.bytes.buffer as ArrayBuffer] : [])
