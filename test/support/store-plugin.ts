// A plugin that puts the test's event store into the host's slot.
import { type ConfiguredPlugin, definePlugin } from '../../core/index.ts'
import type { EventStore } from '../../core/transport.ts'

export const storeWith = (store: EventStore): ConfiguredPlugin =>
  definePlugin<Record<never, never>>({
    options: { type: 'object', additionalProperties: false, properties: {} },
    setup: host => host.provide('eventStore', store),
  })()
