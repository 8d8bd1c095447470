// Finds and starts the files of this package that run in a thread or process of their own: compiled files in the package, and
// sources with tsx in a checkout.
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker, type WorkerOptions } from 'node:worker_threads'

/** Two folders up, from here as from `dist/core/chunks`, where the package has it. */
const root = new URL('../../', import.meta.url)
const extension = extname(fileURLToPath(import.meta.url))
const isSource = extension === '.ts'

/** What a thread in TypeScript begins with: on Node 20 it has none of the loaders of the thread that starts it. */
const compiling = (entry: URL) =>
  `import('tsx/esm/api').then(({ register }) => { register(); return import(${JSON.stringify(entry.href)}) })`

/** The URL of a `thread/main` file. `path` starts at the root of the package and has no extension. */
export const threadUrl = (path: string): URL => new URL(`${path}${extension}`, root)

/**
 * Starts the file at `path`, from the root of the package and without extension, such as `plugins/some-store/thread/main`.
 * The package keeps files of the name `thread/main` for it. What it fails with is the worker's `error` event.
 */
export function startThread(path: string, options: Omit<WorkerOptions, 'eval'> = {}): Worker {
  const entry = threadUrl(path)
  return isSource ? new Worker(compiling(entry), { ...options, eval: true }) : new Worker(entry, options)
}

/** The file that a worker process runs, and its Node options. The build keeps files named `process/main`. */
export const processEntry = (path: string): { readonly filename: string; readonly execArgv: string[] } => ({
  filename: threadUrl(path).href,
  execArgv: isSource ? ['--import', import.meta.resolve('tsx')] : [],
})
