// Reports modules that exit the process or never finish while they are loaded. Otherwise startup would end without a message.
import { AsyncLocalStorage } from 'node:async_hooks'

const TIMEOUT = 30_000

interface Loading {
  over: boolean
  fail(why: string): void
}

const running = new Set<Loading>()
const context = new AsyncLocalStorage<Loading>()
let exit = process.exit

function throwOnExit(code?: number | string | null): never {
  const loading = context.getStore()
  if (!loading || loading.over) return exit.call(process, code)
  throw new Error(`it calls process.exit(${code ?? ''}) while it is loaded; throw an error instead`)
}

const CAUSE = 'a top-level `await` in it, or in a module that it imports, does not finish'

function onIdle() {
  for (const loading of running) loading.fail(`it never finishes: ${CAUSE}`)
}

function start(loading: Loading) {
  running.add(loading)
  if (running.size > 1) return
  exit = process.exit
  process.exit = throwOnExit
  process.on('beforeExit', onIdle)
}

function end(loading: Loading) {
  loading.over = true
  running.delete(loading)
  if (running.size > 0) return
  if (process.exit === throwOnExit) process.exit = exit
  process.off('beforeExit', onIdle)
  // An enabled context slows down every promise of the process.
  context.disable()
}

/** Imports a module. Rejects if it calls `process.exit`, or is not finished after 30 s or when the event loop is empty. */
export async function whileLoading<T>(load: () => Promise<T>): Promise<T> {
  let giveUp: Loading['fail'] = () => undefined
  const late = new Promise<never>((_, reject) => {
    giveUp = why => reject(new Error(why))
  })
  const loading: Loading = { over: false, fail: giveUp }
  // The timer does not keep the process alive; `beforeExit` handles an empty event loop.
  const timer = setTimeout(() => giveUp(`it has not finished after ${TIMEOUT / 1_000} s: ${CAUSE}`), TIMEOUT).unref()
  start(loading)
  try {
    return await Promise.race([context.run(loading, load), late])
  } finally {
    clearTimeout(timer)
    end(loading)
  }
}

/** True while a module is loaded. An empty event loop must then not end the process. */
export const isLoading = (): boolean => running.size > 0
