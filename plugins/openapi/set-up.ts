// Serves the toolset of each document, and replaces it on reload and when a document at a URL has changed.
import { isDeepStrictEqual } from 'node:util'
import type { InternalHost } from '../../core/internal.ts'
import { parseDuration, StartError } from '../../core/plugin.ts'
import { createLogins } from '../families/credentials/index.ts'
import { findLogins } from './credentials.ts'
import type { FilledOptions } from './options.ts'
import type { ReadDocument } from './read-api.ts'
import { isRemote, ServedDocument } from './served-document.ts'

/** Files by options: on reload, `setup` of the new host reads the files for the options that `onReload` receives. */
const readFor = new WeakMap<object, ReadonlyMap<string, ReadDocument>>()

export async function setUpOpenApi(host: InternalHost, options: FilledOptions): Promise<void> {
  const read = new Map<string, ReadDocument>()
  const served = new Map<string, ServedDocument>()
  const logins = createLogins(host)
  const idsOf = ({ documents }: FilledOptions) =>
    Object.entries(documents).flatMap(([name, source]) => findLogins(name, source))
  for (const [name, source] of Object.entries(options.documents)) {
    for (const id of findLogins(name, source)) logins.add(id)
    const own = new ServedDocument(host, name, source, logins)
    served.set(name, own)
    // Services that fetch are available only after set-up.
    const document = own.isRemote
      ? undefined
      : await own.read().catch((error: unknown) => {
          if (!(error instanceof StartError)) throw error
          host.report(error)
        })
    if (document) read.set(name, document)
    own.add(document ?? undefined)
  }
  readFor.set(options, read)
  const remote = [...served.values()].filter(({ isRemote }) => isRemote)
  const { lock, purpose } = host.config
  const readEarly = async (own: ServedDocument, name: string) => {
    try {
      read.set(name, await own.addEarly())
    } catch (error) {
      if (!(error instanceof StartError)) throw error
      // Only a host that serves requires the document.
      host.report(error, purpose === 'inspect' ? 'warning' : 'error')
    }
  }
  host.onReady(async () => {
    if (purpose === 'inspect' || lock.isFrozen) {
      await Promise.all([...served].map(([name, own]) => own.isRemote && readEarly(own, name)))
    }
    for (const own of served.values()) await own.checkBaseUrl()
  })
  host.onStart(async () => {
    await Promise.all(remote.map(own => own.start()))
    // With `--frozen`, a changed document is served only after a restart, which compares it with the lock file.
    if (!lock.isFrozen) keepFresh(host, options, remote)
  })
  host.onClose(async () => {
    await Promise.all([...served.values()].map(own => own.close()))
  })
  host.onReload<FilledOptions>(changed => {
    const next = readFor.get(changed)
    const isSameSet =
      Object.keys(changed.documents).length === served.size &&
      Object.entries(changed.documents).every(([name, source]) => served.get(name)?.isRemote === isRemote(source))
    const isSameLogins = isDeepStrictEqual(idsOf(changed), idsOf(options))
    if (!next || !isSameSet || !isSameLogins || changed.refresh !== options.refresh) return undefined
    for (const [name, read] of next) served.get(name)?.checkRestrictions(read, changed.documents[name])
    return () => {
      for (const [name, source] of Object.entries(changed.documents)) served.get(name)?.reload(source, next.get(name))
    }
  })
}

function keepFresh(host: InternalHost, { refresh }: FilledOptions, remote: readonly ServedDocument[]): void {
  if (refresh === 'off' || remote.length === 0) return
  let isRunning = false
  const runAgain = async () => {
    if (isRunning) return
    isRunning = true
    for (const own of remote) await own.refresh()
    isRunning = false
  }
  const timer = host.clock.setInterval(() => void runAgain(), parseDuration(refresh)).unref()
  host.onClose(() => host.clock.clear(timer))
}
