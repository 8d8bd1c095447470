// Import hooks of core/config/version-hooks.ts for Node.js before 22.15, where hooks run in their own thread.
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import {
  addVersion,
  type Found,
  type ImportContext,
  type Next,
  noteFailed,
  type SeenImport,
  type Versions,
} from '../import-versions.ts'

let data: { readonly port: MessagePort; readonly own: readonly string[] }
let versions: Versions = {}
const noted = new Set<string>()

export function initialize(settings: typeof data): void {
  data = settings
}

export async function resolve(specifier: string, context: ImportContext, next: Next<Promise<Found>>): Promise<Found> {
  const { port, own } = data
  for (let sent = receiveMessageOnPort(port); sent; sent = receiveMessageOnPort(port))
    versions = sent.message as Versions
  const note = (one: SeenImport) => {
    const key = `${one.parent}\n${one.file}\n${versions[one.file ?? one.parent ?? '']}`
    if (!noted.has(key)) port.postMessage(one)
    noted.add(key)
  }
  try {
    return addVersion(await next(specifier, context), context, { own, note, versions })
  } catch (error) {
    noteFailed(context, { own, note })
    throw error
  }
}
