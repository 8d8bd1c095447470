// What changed on a test's host, as clients may be told of it.
import type { ChangeBus } from '../mcp/change-bus.ts'

/** A list that changed, or one resource. */
export interface ToldChange {
  readonly changed: 'tools' | 'resources' | 'prompts' | 'resource'
  /** Of the resource. */
  readonly uri?: string
}

/** Puts what this bus carries into `list`, until the returned function is called. */
export function keepChanges(bus: Pick<ChangeBus, 'subscribe'>, list: ToldChange[]): () => void {
  return bus.subscribe(change => {
    if (change.kind === 'missed') return
    list.push(change.kind === 'resource' ? { changed: 'resource', uri: change.uri } : { changed: change.kind })
  })
}
