// A host whose config files the test changes, and the notifications that its clients receive on reload.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { trackModules } from '../../core/config/module-graph.ts'
import { loadHost, reloadHost } from '../../core/create-host.ts'
import type { Host, ReloadReport } from '../../core/host.ts'
import { definePrompt } from '../../core/index.ts'
import { makeFolder } from '../config/folder.ts'
import { nextMessage } from './session-client.ts'
import { createTestLog, type LogLine } from './start-host.ts'
import type { StreamExchange } from './stream-exchange.ts'

/** Modules of this process that the configs and tools import. */
export const HERE = pathToFileURL(join(import.meta.dirname, '../../core/index.ts')).href

export interface ReloadingHost {
  readonly host: Host
  readonly url: string
  readonly folder: string
  readonly log: readonly LogLine[]
  write(name: string, text: string): Promise<void>
  /** Replaces the first occurrence of a text, which the file must contain. Omit the path that `HERE` stands for. */
  edit(name: string, before: string, after: string): Promise<void>
  reload(): Promise<ReloadReport>
}

const started: Host[] = []

/** `files` contains `mcp.config.ts`; `HERE` in a file is the location of `mcp-host`. */
export async function startReloading(files: Readonly<Record<string, string>>): Promise<ReloadingHost> {
  const placed = (text: string) => text.replaceAll('HERE', `'${HERE}'`)
  const folder = await makeFolder(Object.fromEntries(Object.entries(files).map(([name, text]) => [name, placed(text)])))
  const log = createTestLog()
  const file = join(folder, Object.keys(files).find(name => name.startsWith('mcp.config')) ?? 'mcp.config.ts')
  // As `mcp-host dev` does, and `start` if it costs nothing.
  trackModules({ always: true })
  const host = await loadHost({ cwd: folder, file }, log)
  await host.listen()
  started.push(host)
  const write: ReloadingHost['write'] = (name, text) => writeFile(join(folder, name), placed(text))
  return {
    host,
    url: host.url,
    folder,
    log: log.lines,
    write,
    async edit(name, before, after) {
      const text = (await readFile(join(folder, name), 'utf8')).replaceAll(`'${HERE}'`, 'HERE')
      if (!text.includes(before)) throw new Error(`${name} has no ${before}`)
      await write(name, text.replace(before, after))
    },
    reload: () => reloadHost(host, { cwd: folder, file }),
  }
}

export async function stopReloading(): Promise<void> {
  await Promise.all(started.splice(0).map(host => host.close({ grace: 0 })))
}

let marks = 0

/** The methods that a stream received so far. Publish a last change to mark the end. */
export async function readNotifications(host: Host, ...streams: StreamExchange[]): Promise<string[][]> {
  host.runtime.prompts.add(definePrompt({ name: `mark-${++marks}`, handler: () => 'mark' }))
  return Promise.all(
    streams.map(async stream => {
      const methods: string[] = []
      for (;;) {
        const message = await nextMessage(stream)
        if (!message) throw new Error(`the stream ended after ${methods.join(', ')}`)
        if (message.method === 'notifications/prompts/list_changed') return methods
        methods.push(message.method)
      }
    }),
  )
}
