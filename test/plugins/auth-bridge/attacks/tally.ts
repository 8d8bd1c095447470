// Counts attacks on the bridge, prints `attack: tried N, refused N`, and fails where one was not refused.
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

  /** Prints the line. Throws where an attempt went through, or fewer than `least` were made. */
  end(least: number): void {
    console.log(`      ${this.#attack}: tried ${this.#tried}, refused ${this.#tried - this.#through.length}`)
    expect(this.#through, this.#attack).to.deep.equal([])
    expect(this.#tried, this.#attack).to.be.at.least(least)
  }
}
