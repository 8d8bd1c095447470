// Sees every module that is imported, and has those of the project's own files imported by a URL that says their version:
// Node keeps each module under its URL for ever, so a new version needs a new one. For module-graph.ts.
import module from 'node:module'
import { fileURLToPath } from 'node:url'
import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import { threadUrl } from '../threads/start-thread.ts'
import {
  addVersion,
  type Found,
  type ImportContext,
  type Next,
  noteFailed,
  type SeenImport,
  VERSION,
  type Versions,
} from './import-versions.ts'

export interface VersionHooks {
  /** What was imported since this was asked before. */
  drain(): SeenImport[]
  /** From now on files are imported by these versions; what is not in it has none. */
  setVersions(versions: Versions): void
}

/** The files of this package, which stay what they are: the folders beside the one that this is in. */
const OWN = ['core', 'plugins', 'client', 'cli'].map(folder =>
  fileURLToPath(new URL(`../../${folder}/`, import.meta.url)),
)

type Hook = (specifier: string, context: ImportContext, next: Next<Found>) => Found
const registerHooks: ((hooks: { resolve: Hook }) => void) | undefined = Reflect.get(module, 'registerHooks')

/** True where hooks cost nothing: they run in this thread (Node 22.15 and later). */
export const hooksAreCheap = (): boolean => registerHooks !== undefined

function installHere(register: NonNullable<typeof registerHooks>): VersionHooks {
  let versions: Versions = {}
  const seen: SeenImport[] = []
  const note = (one: SeenImport) => void seen.push(one)
  register({
    resolve(specifier, context, next) {
      try {
        return addVersion(next(specifier, context), context, { own: OWN, versions, note })
      } catch (error) {
        noteFailed(context, { own: OWN, note })
        throw error
      }
    },
  })
  return {
    drain: () => seen.splice(0),
    setVersions(given) {
      versions = given
    },
  }
}

function received(port: MessagePort): SeenImport[] {
  const messages: SeenImport[] = []
  for (let one = receiveMessageOnPort(port); one; one = receiveMessageOnPort(port)) {
    messages.push(one.message as SeenImport)
  }
  return messages
}

function installInThread(): VersionHooks {
  const { port1, port2 } = new MessageChannel()
  port1.unref()
  module.register(threadUrl('core/config/thread/main'), { data: { port: port2, own: OWN }, transferList: [port2] })
  return {
    drain: () => received(port1),
    // Read by the other thread before its next import: what is posted is there at once.
    setVersions: versions => port1.postMessage({ ...versions }),
  }
}

/** For the rest of the process. */
export const installHooks = (): VersionHooks => (registerHooks ? installHere(registerHooks) : installInThread())

/** The URL of a file at a version. */
export function versionedUrl(url: string, version: number | undefined): string {
  if (version === undefined) return url
  const versioned = new URL(url)
  versioned.searchParams.set(VERSION, String(version))
  return versioned.href
}
