// Faults at a known request count, to test that each check can fail.
import { openSync } from 'node:fs'
import { definePlugin, type Services } from '../../core/internal.ts'
import type { ConfiguredPlugin } from '../../core/plugin.ts'
import type { Session } from '../../core/transport.ts'
import type { AttackedSettings, Plant } from './attacked-settings.ts'

/** Milliseconds that the loop stands still. */
const STALL = 450

function spin(milliseconds: number) {
  const start = process.cpuUsage()
  const ran = () => {
    const { user, system } = process.cpuUsage(start)
    return (user + system) / 1_000
  }
  while (ran() < milliseconds);
}

/** A plugin with these faults; with none, one that does nothing. */
export function plant({ markers }: AttackedSettings, plants: readonly Plant[]): ConfiguredPlugin {
  const has = (name: Plant) => plants.includes(name)
  const held: unknown[] = []
  let requests = 0
  const everyTenth: Partial<Record<Plant, () => void>> = {
    // 8 MB each, so that few requests of a busy machine are enough. The system commits memory only when it is written.
    leak: () => void held.push(Buffer.alloc(8_000_000)),
    descriptor: () => openSync('/dev/null', 'r'),
    timer: () => held.push(setInterval(() => undefined, 60_000)),
    crash: () =>
      setTimeout(() => {
        throw new Error('planted: crash')
      }, 1),
  }
  return definePlugin<Record<never, never>>({
    options: { type: 'object', additionalProperties: false, properties: {} },
    setup(host) {
      if (plants.length === 0) return
      host.onRequest(async (ctx, next) => {
        requests++
        if (requests % 10 === 0) {
          for (const [name, happen] of Object.entries(everyTenth)) if (has(name as Plant)) happen()
        }
        if (has('stall') && requests % 60 === 5) spin(STALL)
        if (has('error') && requests % 40 === 6) throw new Error('planted: error')
        if (has('hang') && requests % 100 === 7) await new Promise(() => undefined)
        if (has('secret') && ctx.path === '/guarded') {
          ctx.body = { jsonrpc: '2.0', id: 1, result: { content: markers.guarded } }
          return
        }
        await next()
      })
      let inFlight: Services['trackRequest'] | undefined
      host.onReady(() => {
        const services = host.services
        inFlight = services.trackRequest
      })
      let calls = 0
      host.onCall(async (call, next) => {
        calls++
        if (has('session') && call.session && calls % 10 === 0) (call.session as Session).use()
        if (has('running') && calls % 50 === 1) inFlight?.(() => undefined)
        if (has('foreign') && call.params['name'] === 'whoami')
          return { content: [{ type: 'text', text: markers.alice }] }
        if (has('wrong') && call.params['name'] === 'add') return { content: [], structuredContent: { sum: -1 } }
        return next()
      })
    },
  })()
}
