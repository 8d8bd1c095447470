// Starts the files of this package that run in a thread or process of their own: compiled files in the package, sources with tsx
// in a checkout.
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker, type WorkerOptions } from 'node:worker_threads'

/** Two folders up, from here as from `dist/core/chunks`, where the package has it. */
const root = new URL('../../', import.meta.url)
const extension = extname(fileURLToPath(import.meta.url))
const isSource = extension === '.ts'

/** The URL of a `thread/main` file. `path` starts at the root of the package and has no extension. */
export const threadUrl = (path: string): URL => new URL(`${path}${extension}`, root)

/**
 * Starts the file at `path`, from the root of the package and without extension, such as `plugins/some-store/thread/main`.
 * The build keeps files of this name. Errors are the worker's `error` event.
 */
export function startThread(path: string, options: Omit<WorkerOptions, 'eval' | 'argv'> = {}): Worker {
  const entry = threadUrl(path)
  if (!isSource) return new Worker(entry, options)
  return new Worker(new URL('./typescript.mjs', import.meta.url), { ...options, argv: [entry.href] })
}

/** The file that a worker process runs, and its Node options. The build keeps files named `process/main`. */
export const processEntry = (path: string): { readonly filename: string; readonly execArgv: string[] } => ({
  filename: threadUrl(path).href,
  execArgv: isSource ? ['--import', import.meta.resolve('tsx')] : [],
})
