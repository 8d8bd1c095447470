// The processes that serve one config behind one address (`--workers`), as one of them reaches the others: over what started
// them all. Where there is no such thing a process is alone. For the defaults of the slots `changeBus` and `peers`.

/** What comes from the others, and from this process itself. */
export interface Heard {
  /** Something that all are told, by its number: one more than the last. Called in that order. */
  told?(text: string, number: number): void
  /** What was told could not be kept for this process, or what keeps it has begun anew: something is missing. */
  missed?(number: number): void
  /** Something for this process alone. */
  received?(text: string): void
}

export interface Neighbours {
  /** From now on this process is among them by this name, and hears. Does nothing the second time. */
  join(node: string, heard: Heard): void
  /** The others do not find it any more. */
  leave(node: string): Promise<void>
  /** Tells all who have joined, this process too. Resolves once each of them will hear it, in one order for all. */
  tell(text: string): Promise<void>
  /** The number of the last thing that this process was told; numbers of another run are never gone on with. 0: none yet. */
  readonly last: number
  /** What all were told after this number; undefined where some of it is gone. */
  since(number: number): Promise<readonly string[] | undefined>
  /** Resolves once it is on its way to the process of this name; false where there is none. */
  send(node: string, text: string): Promise<boolean>
  /** Whether a process of this name has joined, and not left or ended. */
  has(node: string): Promise<boolean>
}
