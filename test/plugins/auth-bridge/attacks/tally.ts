// Counts attacks on the bridge, prints `attack: tried N, refused N`, and fails where one was not refused. Of a search it says
// `searched N, clean N`.
import { expect } from 'chai'

export class Tally {
  readonly #attack: string
  readonly #through: string[] = []
  #tried = 0

  readonly #words: readonly [string, string]

  constructor(attack: string, words: readonly [string, string] = ['tried', 'refused']) {
    this.#attack = attack
    this.#words = words
  }

  /** One attempt; `found` is shown where it was not refused. */
  add(what: string, isRefused: boolean, found: unknown = ''): void {
    this.#tried += 1
    if (!isRefused)
      this.#through.push(`${what} ${typeof found === 'string' ? found : JSON.stringify(found)}`.slice(0, 400))
  }

  /** Prints the line. Throws where an attempt went through, or fewer than `least` were made. */
  end(least: number): void {
    const [tried, refused] = this.#words
    console.log(`      ${this.#attack}: ${tried} ${this.#tried}, ${refused} ${this.#tried - this.#through.length}`)
    expect(this.#through, this.#attack).to.deep.equal([])
    expect(this.#tried, this.#attack).to.be.at.least(least)
  }
}
