// The selected node. Every URL contains it.
import { signal } from '@preact/signals'
import { PATHS } from '../../api.ts'

/** Empty: all nodes. */
export const selectedNode = signal(new URLSearchParams(location.search).get('node') ?? '')

const PATHS_OF_NODES: readonly string[] = [
  PATHS.overview,
  PATHS.calls,
  PATHS.denials,
  PATHS.sessions,
  PATHS.tasks,
  PATHS.clients,
  PATHS.upstreams,
  PATHS.events,
]

/** Adds the selected node to the URL, if its data depends on the node. */
export function withNode(url: string): string {
  const [path = '', query] = url.split('?')
  if (selectedNode.value === '' || !PATHS_OF_NODES.includes(path)) return url
  return `${url}${query === undefined ? '?' : '&'}node=${encodeURIComponent(selectedNode.value)}`
}
