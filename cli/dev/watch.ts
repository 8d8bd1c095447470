// Watches the config, its imports, environment files, and new files that can match a toolset.
import { dirname, extname, relative, sep } from 'node:path'
import type { FSWatcher } from 'chokidar'

/** A new file with these extensions can match a toolset or resolve a failed import. */
const CODE = new Set(['.ts', '.mts', '.cts', '.tsx', '.js', '.mjs', '.cjs', '.jsx'])
/** Debounce time, milliseconds: one save often causes several events. */
const SETTLE_TIME = 80

interface WatchSettings {
  readonly folder: string
  readonly always: readonly string[]
  /** `areNew`: all files are new, so it is unknown whether anything imports them. */
  readonly changed: (files: readonly string[], areNew: boolean) => void
}

function isIgnored(folder: string, path: string): boolean {
  const within = relative(folder, path)
  if (within === '' || within.startsWith('..')) return false
  return within.split(sep).some(part => part === 'node_modules' || (part.startsWith('.') && !part.startsWith('.env')))
}

function isKnown(known: ReadonlySet<string>, path: string): boolean {
  for (let at = path; ; at = dirname(at)) {
    if (known.has(at)) return true
    if (dirname(at) === at) return false
  }
}

export async function watchProject({ folder, always, changed }: WatchSettings) {
  const { watch } = await import('chokidar')
  const known = new Set<string>(always)
  const pending = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  const ignored = (path: string) => !known.has(path) && isIgnored(folder, path)
  const watcher: FSWatcher = watch([folder, ...always], { ignoreInitial: true, ignored })
  watcher.on('all', (event, path) => {
    const isNew = event === 'add' && CODE.has(extname(path))
    if (!isKnown(known, path) && !isNew) return
    pending.add(path)
    clearTimeout(timer)
    timer = setTimeout(() => {
      const files = [...pending]
      pending.clear()
      changed(files, !files.some(file => isKnown(known, file)))
    }, SETTLE_TIME)
  })
  // A failed watch, as at a system limit, is not fatal.
  watcher.on('error', () => undefined)
  await new Promise<void>(resolve => watcher.once('ready', resolve))
  return {
    know(files: readonly string[]): void {
      const outside = files.filter(file => !known.has(file) && relative(folder, file).startsWith('..'))
      for (const file of files) known.add(file)
      if (outside.length > 0) watcher.add(outside)
    },
    async close(): Promise<void> {
      clearTimeout(timer)
      await watcher.close()
    },
  }
}
