// What changed on a test's host, as clients may be told of it.
import type { Change, ChangeBus } from '../mcp/change-bus.ts'

/** A list that changed, or one resource. */
export interface ToldChange {
  readonly changed: 'tools' | 'resources' | 'prompts' | 'resource'
  /** Of the resource. */
  readonly uri?: string
}

/** Undefined for what says nothing of its own. */
export function toldChange(change: Change): ToldChange | undefined {
  if (change.kind === 'missed') return undefined
  return change.kind === 'resource' ? { changed: 'resource', uri: change.uri } : { changed: change.kind }
}

/** Keeps what this bus carries, from now on. */
export function keepChanges(bus: Pick<ChangeBus, 'subscribe'>): { readonly list: ToldChange[]; stop(): void } {
  const list: ToldChange[] = []
  const stop = bus.subscribe(change => {
    const told = toldChange(change)
    if (told) list.push(told)
  })
  return { list, stop }
}
