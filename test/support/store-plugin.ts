// A plugin that puts the test's event store into the host's slot.
import { definePlugin } from '../../core/internal.ts'
import type { ConfiguredPlugin } from '../../core/plugin.ts'
import type { EventStore } from '../../core/sessions/event-store.ts'

export const storeWith = (store: EventStore): ConfiguredPlugin =>
  definePlugin<Record<never, never>>({
    options: { type: 'object', additionalProperties: false, properties: {} },
    setup: host => host.provide('eventStore', store),
  })()
