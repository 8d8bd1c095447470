// The message primitive: texts to all nodes in one order, and to one node.

/**
 * Delivers texts between nodes. `publish` and `send` reject with the HostError `unavailable` if the nodes cannot be reached; the
 * outcome is then unknown.
 */
export interface Bus {
  /** `true`: all nodes; `host`: all processes of this host; `false`: this process only. */
  readonly shared: boolean | 'host'
  /** The name of this node. */
  readonly node: string
  /** Delivers a text to every listener of every node, in one order. Resolves once delivery to every node is certain. */
  publish(text: string): void | Promise<void>
  /** Returns an unsubscribe function. `text` undefined: an unknown number of texts was lost. */
  subscribe(listener: (text: string | undefined, position?: string) => void): () => void
  /** The position of the last text; the same text has the same position on every node. */
  readonly position: string
  isAfter(one: string, other: string): boolean
  /** The texts after a position. Undefined if some are gone. */
  since(position: string): Promise<ReadonlyArray<{ readonly text: string; readonly position: string }> | undefined>
  /** Sends to one node. Resolves once the text is stored; false if the node does not exist. `share`: unit of fairness. */
  send(node: string, text: string, share: string): Promise<boolean>
  /** Receives the texts that are sent to this node, in `send` order. */
  receive(listener: (text: string) => void): void
  /** True after a heartbeat within the last 15 seconds. Can be cached for one second. */
  isAlive(node: string): Promise<boolean>
  /** Stops this node: others can take over its sessions at once. */
  leave(): Promise<void>
}
