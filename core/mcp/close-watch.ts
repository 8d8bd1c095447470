// Finds the handler that blocks the event loop after its first `await`. This tracks every promise and timer, which costs each call
// some microseconds, so it runs only for a while after a stall with several possible handlers.
import { AsyncResource, createHook, executionAsyncResource } from 'node:async_hooks'
import type { Clock } from '../http/clock.ts'
import type { CatalogItem } from './catalog.ts'

/** How long handlers are tracked after a stall, milliseconds. */
const WATCHED_FOR = 60_000
/** Shorter computations are ignored, milliseconds. */
const NOTABLE = 10

const OWNER = Symbol('the item whose handler this is a part of')

interface Owned {
  [OWNER]?: CatalogItem
}

/** What a handler does at once; whatever begins in there is followed. Measured by whoever runs it. */
class HandlerScope extends AsyncResource {
  readonly [OWNER]: CatalogItem

  constructor(item: CatalogItem) {
    super('mcp-host handler')
    this[OWNER] = item
  }
}

export interface CloseWatch {
  /** From now on, for a while: handlers that begin are followed. */
  begin(now: number): void
  /** What a handler does at once. */
  run<T>(item: CatalogItem, handle: () => T): T
  /** How long each handler that is followed computed at a time after it waited, milliseconds, since this was asked last. */
  take(now: number): ReadonlyMap<CatalogItem, number>
  end(): void
}

const NOTHING: ReadonlyMap<CatalogItem, number> = new Map()

export function createCloseWatch(clock: Clock): CloseWatch {
  let found = new Map<CatalogItem, number>()
  /** When what runs now began, the innermost last. */
  const starts: number[] = []
  /** Undefined: nobody is followed. */
  let until: number | undefined

  function add(ms: number, { [OWNER]: item }: Owned) {
    if (item && ms > NOTABLE) found.set(item, Math.max(ms, found.get(item) ?? 0))
  }

  const hook = createHook({
    init(_id, _type, _trigger, resource: Owned) {
      const { [OWNER]: item } = executionAsyncResource() as Owned
      if (item) resource[OWNER] = item
    },
    before() {
      starts.push(clock.monotonic())
    },
    after() {
      const start = starts.pop()
      const resource = executionAsyncResource()
      if (start !== undefined && !(resource instanceof HandlerScope)) add(clock.monotonic() - start, resource)
    },
  })

  function end() {
    hook.disable()
    until = undefined
    starts.length = 0
  }

  return {
    begin(now) {
      if (until === undefined) hook.enable()
      until = now + WATCHED_FOR
    },
    run(item, handle) {
      return until === undefined ? handle() : new HandlerScope(item).runInAsyncScope(handle)
    },
    take(now) {
      if (until === undefined) return NOTHING
      if (now > until) end()
      // What threw has no end.
      starts.length = 0
      if (found.size === 0) return NOTHING
      const taken = found
      found = new Map()
      return taken
    },
    end,
  }
}
