// Counts attack attempts, and fails if one was not rejected or too few were made.
import { expect } from 'chai'

export class Tally {
  readonly #attack: string
  readonly #through: string[] = []
  #tried = 0

  constructor(attack: string) {
    this.#attack = attack
  }

  /** One attempt; `found` is shown where it was not refused. */
  add(what: string, isRefused: boolean, found: unknown = ''): void {
    this.#tried += 1
    if (!isRefused)
      this.#through.push(`${what} ${typeof found === 'string' ? found : JSON.stringify(found)}`.slice(0, 400))
  }

  /** Throws if an attempt went through, or fewer than `least` were made. */
  end(least: number): void {
    expect(this.#through, this.#attack).to.deep.equal([])
    expect(this.#tried, this.#attack).to.be.at.least(least)
  }
}
