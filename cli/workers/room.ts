// Room that several share so that none of them can take all of it: each may have as much as it leaves free. For hub.ts.

/** In the place of true or false: whom it is for has not taken what it was sent before, or so much of that share. */
export const FULL = 'full'

/** Whether a message is on its way; false where nobody is there by that name. */
export type Sent = boolean | typeof FULL

export class Room {
  readonly #most: number
  readonly #of = new Map<string, number>()
  #taken = 0

  constructor(most: number) {
    this.#most = most
  }

  get taken(): number {
    return this.#taken
  }

  get isFull(): boolean {
    return this.#taken > this.#most
  }

  /** Whether there is room for more of one's: with one of them that is half of all, with two a third each, and so on. */
  fits(whose: string, size: number): boolean {
    return this.#taken === 0 || (this.#of.get(whose) ?? 0) + size <= this.#most - this.#taken
  }

  /** Also where it does not fit. */
  take(whose: string, size: number): void {
    this.#taken += size
    this.#of.set(whose, (this.#of.get(whose) ?? 0) + size)
  }

  give(whose: string, size: number): void {
    this.#taken -= size
    const left = (this.#of.get(whose) ?? 0) - size
    if (left > 0) this.#of.set(whose, left)
    else this.#of.delete(whose)
  }
}
