// Counts reads of any event store, and can hold reads back.
import type { InternalHost } from '../../core/internal.ts'
import type { ConfiguredPlugin } from '../../core/plugin.ts'
import type { EventStore } from '../../core/sessions/event-store.ts'
import type { LogPage, Store } from '../../core/store/store.ts'
import { createGate } from './gate.ts'

export interface StoreMeter {
  /** Reads, reads under way now, and most concurrent reads. */
  reads: number
  inTransit: number
  mostUnderWay: number
  /** Bytes of all returned messages, and the most in one read. */
  bytes: number
  mostBytes: number
  /** Holds back all reads until the returned function is called. */
  hold(): () => void
}

export interface Metered {
  readonly meter: StoreMeter
  /** The plugin, with its event store metered. */
  readonly plugin: ConfiguredPlugin
}

type HeldMeter = StoreMeter & { readonly held: () => Promise<void> }

async function meterRead<Found>(
  meter: HeldMeter,
  read: () => Found | Promise<Found>,
  messagesOf: (found: Found) => readonly string[],
): Promise<Found> {
  meter.reads++
  meter.mostUnderWay = Math.max(meter.mostUnderWay, ++meter.inTransit)
  try {
    await meter.held()
    const found = await read()
    const bytes = messagesOf(found).reduce((sum, message) => sum + Buffer.byteLength(message), 0)
    meter.bytes += bytes
    meter.mostBytes = Math.max(meter.mostBytes, bytes)
    return found
  } finally {
    meter.inTransit--
  }
}

function metered(store: EventStore, meter: HeldMeter): EventStore {
  return {
    ...store,
    async after(session, stream, seq, max) {
      const read = () => store.after(session, stream, seq, max)
      if (max === 0) return read()
      return meterRead(meter, read, events => (events ?? []).map(({ message }) => message))
    },
  }
}

/** A store, with its reads of messages metered. */
function meteredLogs(store: Store, meter: HeldMeter): Store {
  const read: Store['read'] = (partition, queries) => {
    const act = () => store.read(partition, queries)
    if (!queries.some(query => 'log' in query && query.bytes !== 0)) return act()
    return meterRead(meter, act, pages =>
      (pages as ReadonlyArray<LogPage | undefined>).flatMap(page => page?.messages ?? []),
    )
  }
  return Object.create(store, { read: { value: read }, transact: { value: store.transact.bind(store) } })
}

export function meteredStore(configured: ConfiguredPlugin): Metered {
  let held = Promise.resolve()
  const meter = {
    ...{ reads: 0, inTransit: 0, mostUnderWay: 0, bytes: 0, mostBytes: 0 },
    held: () => held,
    hold() {
      const gate = createGate()
      held = gate.opened
      return () => gate.open()
    },
  }
  const setup = configured.plugin.setup as (host: InternalHost, options: object) => void | Promise<void>
  const provide = (host: InternalHost) => (slot: string, service: unknown) =>
    (host.provide as (slot: string, service: unknown) => void)(
      slot,
      slot === 'eventStore'
        ? metered(service as EventStore, meter)
        : slot === 'store'
          ? meteredLogs(service as Store, meter)
          : service,
    )
  // The plugin itself declares the key.
  const { storeKey: _, ...others } = configured.plugin
  const plugin = {
    ...others,
    setup: (host: InternalHost, options: object) =>
      setup(Object.create(host, { provide: { value: provide(host) } }), options),
  }
  return { meter, plugin: { ...configured, plugin: plugin as ConfiguredPlugin['plugin'] } }
}
