// Starts threads and processes from files of this package: compiled files when installed, sources in a checkout.
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker, type WorkerOptions } from 'node:worker_threads'

const root = new URL('../../', import.meta.url)
const extension = extname(fileURLToPath(import.meta.url))
const isSource = extension === '.ts'

/** Returns the URL of a `thread/main` file. `path` starts at the package root and has no extension. */
export const threadUrl = (path: string): URL => new URL(`${path}${extension}`, root)

/**
 * Starts the worker file at `path`, relative to the package root and without extension. The build keeps files named
 * `thread/main`.
 */
export function startThread(path: string, options: Omit<WorkerOptions, 'eval' | 'argv'> = {}): Worker {
  const entry = threadUrl(path)
  if (!isSource) return new Worker(entry, options)
  // Without the inherited `--import tsx`, which costs more than the thread itself.
  if ('typescript' in process.features && process.features.typescript)
    return new Worker(entry, { ...options, execArgv: [] })
  return new Worker(new URL('./typescript.mjs', import.meta.url), { ...options, argv: [entry.href] })
}

/** Returns the file and Node options of a worker process. The build keeps files named `process/main`. */
export const processEntry = (path: string): { readonly filename: string; readonly execArgv: string[] } => ({
  filename: threadUrl(path).href,
  execArgv: isSource ? ['--import', import.meta.resolve('tsx')] : [],
})
