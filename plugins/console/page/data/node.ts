// The node that the operator selected, as part of every URL.
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
  PATHS.events,
]

/** Adds the node to requests for data of nodes. */
export function withNode(url: string): string {
  const [path = '', query] = url.split('?')
  if (selectedNode.value === '' || !PATHS_OF_NODES.includes(path)) return url
  return `${url}${query === undefined ? '?' : '&'}node=${encodeURIComponent(selectedNode.value)}`
}
