// Watches a project for changes that its server should know of: its config and all that this imports, new files that a
// toolset may take, and files of environment variables.
import { dirname, extname, relative, sep } from 'node:path'
import type { FSWatcher } from 'chokidar'

/** A new file of these may belong to a toolset, or be what an import lacked. */
const CODE = new Set(['.ts', '.mts', '.cts', '.tsx', '.js', '.mjs', '.cjs', '.jsx'])
/** How long to wait for more changes, milliseconds: a save is often several. */
const QUIET = 80

export interface Watch {
  /** The files that matter by now, wherever they lie; of a folder, all that is in it. */
  know(files: readonly string[]): void
  close(): Promise<void>
}

interface WatchSettings {
  readonly folder: string
  readonly always: readonly string[]
  readonly changed: (files: readonly string[]) => void
}

function isPassedOver(folder: string, path: string): boolean {
  const within = relative(folder, path)
  if (within === '' || within.startsWith('..')) return false
  return within.split(sep).some(part => part === 'node_modules' || (part.startsWith('.') && !part.startsWith('.env')))
}

function isAmong(known: ReadonlySet<string>, path: string): boolean {
  for (let at = path; ; at = dirname(at)) {
    if (known.has(at)) return true
    if (dirname(at) === at) return false
  }
}

export async function watchProject({ folder, always, changed }: WatchSettings): Promise<Watch> {
  const { watch } = await import('chokidar')
  const known = new Set<string>(always)
  const waiting = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  const ignored = (path: string) => !known.has(path) && isPassedOver(folder, path)
  const watcher: FSWatcher = watch([folder, ...always], { ignoreInitial: true, ignored })
  watcher.on('all', (event, path) => {
    const isNew = event === 'add' && CODE.has(extname(path))
    if (!isAmong(known, path) && !isNew) return
    waiting.add(path)
    clearTimeout(timer)
    timer = setTimeout(() => {
      const files = [...waiting]
      waiting.clear()
      changed(files)
    }, QUIET)
  })
  // What cannot be watched, as where a system has no more watches, is no reason to end.
  watcher.on('error', () => undefined)
  await new Promise<void>(resolve => watcher.once('ready', resolve))
  return {
    know(files) {
      const outside = files.filter(file => !known.has(file) && relative(folder, file).startsWith('..'))
      for (const file of files) known.add(file)
      if (outside.length > 0) watcher.add(outside)
    },
    async close() {
      clearTimeout(timer)
      await watcher.close()
    },
  }
}
