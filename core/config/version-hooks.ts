// Tracks imports and adds a version to the URLs of project files, because Node.js caches each module permanently by URL.
import { randomUUID } from 'node:crypto'
import module from 'node:module'
import { fileURLToPath } from 'node:url'
import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import { threadUrl } from '../threads/start-thread.ts'
import {
  addVersion,
  type Found,
  type ImportContext,
  LINKED,
  type Next,
  noteFailed,
  type SeenImport,
  VERSION,
  type Versions,
} from './import-versions.ts'

export interface VersionHooks {
  drain(): SeenImport[]
  setVersions(versions: Versions): void
}

/** The folders of this package, whose files never change. */
const OWN = ['core', 'plugins', 'client', 'cli'].map(folder =>
  fileURLToPath(new URL(`../../${folder}/`, import.meta.url)),
)

type Hook = (specifier: string, context: ImportContext, next: Next<Found>) => Found
const registerHooks: ((hooks: { resolve: Hook }) => void) | undefined = Reflect.get(module, 'registerHooks')

/** True if hooks run in this thread (Node 22.15 and later). */
export const hasSynchronousHooks = (): boolean => registerHooks !== undefined

const linkedBy = (url = '') => url.includes(LINKED) && new URL(url).searchParams.get(LINKED)

function installInThisThread(register: NonNullable<typeof registerHooks>): VersionHooks {
  let versions: Versions = {}
  // By importer and file, because handlers can import a module in every call.
  const seen = new Map<string, SeenImport>()
  const note = (one: SeenImport) => {
    const key = `${one.parent}\n${one.file}`
    if (!seen.has(key)) seen.set(key, one)
  }
  register({
    resolve(name, importer, next) {
      const linked = !name.startsWith('./throw-linked.') && linkedBy(importer.parentURL)
      const specifier = linked || name
      const context = linked ? { ...importer, parentURL: undefined } : importer
      try {
        return addVersion(next(specifier, context), context, { own: OWN, versions, note })
      } catch (error) {
        noteFailed(context, { own: OWN, note })
        throw error
      }
    },
  })
  return {
    drain() {
      const imports = [...seen.values()]
      seen.clear()
      return imports
    },
    setVersions(changed) {
      versions = changed
    },
  }
}

function drainPort(port: MessagePort): SeenImport[] {
  const messages: SeenImport[] = []
  for (let one = receiveMessageOnPort(port); one; one = receiveMessageOnPort(port)) {
    messages.push(one.message as SeenImport)
  }
  return messages
}

function installInThread(): VersionHooks {
  const { port1, port2 } = new MessageChannel()
  port1.unref()
  const url = threadUrl('core/config/thread/main')
  // A process can contain copies of this package: tsx loads one for `require` and one for `import`. Node.js loads each
  // URL only once, so each copy needs its own URL and port.
  url.search = randomUUID()
  module.register(url, { data: { port: port2, own: OWN }, transferList: [port2] })
  return {
    drain: () => drainPort(port1),
    // The loader thread reads this synchronously before its next import.
    setVersions: versions => port1.postMessage({ ...versions }),
  }
}

export const installHooks = (): VersionHooks => (registerHooks ? installInThisThread(registerHooks) : installInThread())

export function versionedUrl(url: string, version: number | undefined): string {
  if (version === undefined) return url
  const versioned = new URL(url)
  versioned.searchParams.set(VERSION, String(version))
  return versioned.href
}
