// Converts the outcome of a handler, and watches handlers that ignore their signal.
import type { Clock } from '../../http/clock.ts'
import { HostError } from '../../http/errors.ts'
import type { Logger } from '../../kernel/log.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import type { CatalogItem } from '../definitions/catalog.ts'
import { ToolError } from '../definitions/tool-error.ts'

type Result = object | Promise<object>

export function afterHandler(
  run: () => unknown,
  succeeded: (value: unknown) => Result,
  failed: (error: unknown) => object,
): Result {
  try {
    const value = run()
    const result = value instanceof Promise ? value.then(succeeded) : succeeded(value)
    return result instanceof Promise ? result.catch(failed) : result
  } catch (error) {
    return failed(error)
  }
}

/** Throws the error with status 200, except a missing capability, an ended login (401) and unknown errors. */
export function throwFailure(error: unknown): never {
  if (ToolError.is(error)) throw new HostError('internal', { detail: error.message }).withStatus200()
  if (!HostError.is(error)) throw error
  const isChallenge = error.kind === 'unauthorized' && error.headers?.['WWW-Authenticate'] !== undefined
  throw isChallenge || error.kind === 'missingCapability' ? error : error.withStatus200()
}

/** Milliseconds after the abort before a running handler is logged. */
const GRACE = 2_000
const FIX =
  'pass ctx.signal to the operations that it awaits, or check ctx.signal.aborted between steps; `concurrency` limits such calls'

export function watchOverdue(
  log: Pick<Logger, 'warn'>,
  metrics: Pick<Metrics, 'gauge'>,
  clock: Clock,
): (item: CatalogItem, limit: number) => () => void {
  let all = 0
  const figure = { name: 'mcp_host_handlers_overdue', help: 'Handlers that still run after the timeout of their call.' }
  metrics.gauge(figure, () => all)

  return (item, limit) => {
    all++
    const fields = { kind: item.kind, name: item.key, limit, fix: FIX }
    const warn = () =>
      log.warn({ code: 'MH1609', ...fields }, 'a handler continues after its timeout: it ignores its signal')
    const timer = clock.setTimeout(warn, GRACE).unref()
    return () => {
      all--
      clock.clear(timer)
    }
  }
}
