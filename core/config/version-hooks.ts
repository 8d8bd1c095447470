// Sees every module that is imported, and has those of the project's own files imported by a URL that says their version:
// Node keeps each module under its URL for ever, so a new version needs a new one. For module-graph.ts.
import module from 'node:module'
import { fileURLToPath } from 'node:url'
import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads'

const VERSION = 'mcp-host-version'

/** What one import was found to be. */
export interface SeenImport {
  /** Undefined: by Node itself. */
  readonly parent: string | undefined
  /** Undefined where nothing was found. */
  readonly file: string | undefined
}

export interface VersionHooks {
  /** What was imported since this was asked before. */
  drain(): SeenImport[]
  /** From now on files are imported by these versions; what is not in it has none. */
  setVersions(versions: Readonly<Record<string, number>>): void
}

/** Plain JavaScript, for both threads: loaders run in one of their own where Node has no hooks for this one. */
const SHARED = `
const KEY = ${JSON.stringify(VERSION)}
const strip = url => {
  if (typeof url !== 'string' || !url.includes(KEY)) return url
  const parsed = new URL(url)
  parsed.searchParams.delete(KEY)
  return parsed.href
}
/** tsx may write a query of its own into the path. */
const pathOf = url => {
  try {
    return typeof url === 'string' && url.startsWith('file:') ? fileURLToPath(url.split(/[?#]|%3F/i)[0]) : undefined
  } catch {
    return undefined
  }
}
const isForeign = path => path.includes('/node_modules/') || path.includes('\\\\node_modules\\\\') || own.some(folder => path.startsWith(folder))
const failed = (context, told) => {
  const parent = pathOf(context.parentURL)
  if (parent !== undefined && !isForeign(parent)) told({ parent, file: undefined })
}
const after = (found, context, versions, told) => {
  const file = pathOf(found.url)
  if (file === undefined || isForeign(file)) return found
  told({ parent: pathOf(context.parentURL), file })
  // Node keeps what is required by its file alone.
  const version = context.conditions?.includes('require') && !context.conditions.includes('import') ? undefined : versions[file]
  const url = new URL(strip(found.url))
  if (version !== undefined) url.searchParams.set(KEY, String(version))
  return { ...found, url: url.href }
}
`

const THREAD = `
import { fileURLToPath } from 'node:url'
import { receiveMessageOnPort } from 'node:worker_threads'
let port
let own = []
let versions = {}
export function initialize(data) {
  port = data.port
  own = data.own
}
${SHARED}
const told = one => port.postMessage(one)
export async function resolve(specifier, context, next) {
  for (let told; (told = receiveMessageOnPort(port)); ) versions = told.message
  try {
    return after(await next(specifier, context), context, versions, told)
  } catch (error) {
    failed(context, told)
    throw error
  }
}
`

interface Shared {
  after(found: object, context: object, versions: object, told: (one: SeenImport) => void): object
  failed(context: object, told: (one: SeenImport) => void): void
}

/** The files of this package, which stay what they are: the folders beside the one that this is in. */
const OWN = ['core', 'plugins', 'client', 'cli'].map(folder =>
  fileURLToPath(new URL(`../../${folder}/`, import.meta.url)),
)

type Resolve = (specifier: string, context: object, next: (specifier: string, context: object) => object) => object
const registerHooks: ((hooks: { resolve: Resolve }) => void) | undefined = Reflect.get(module, 'registerHooks')

/** True where hooks cost nothing: they run in this thread (Node 22.15 and later). */
export const hooksAreCheap = (): boolean => registerHooks !== undefined

function installHere(register: NonNullable<typeof registerHooks>): VersionHooks {
  const make = new Function('fileURLToPath', 'own', `${SHARED}; return { after, failed }`)
  const { after, failed } = make(fileURLToPath, OWN) as Shared
  let versions: Readonly<Record<string, number>> = {}
  const seen: SeenImport[] = []
  const told = (one: SeenImport) => void seen.push(one)
  register({
    resolve(specifier, context, next) {
      try {
        return after(next(specifier, context), context, versions, told)
      } catch (error) {
        failed(context, told)
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
  const source = `data:text/javascript,${encodeURIComponent(THREAD)}`
  module.register(source, import.meta.url, { data: { port: port2, own: OWN }, transferList: [port2] })
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
