// Short texts that are the same for values that are equal as JSON. For linear-keywords.ts, within one validation: values
// may be changed before the next.

export class JsonKeys {
  /** A parent's text has its children's numbers, not their texts: each level costs what is on it. */
  readonly #numbers = new Map<string, number>()
  readonly #known = new Map<object, string>()

  /** The same text for values that are equal as JSON, whatever the order of their keys. */
  keyOf(value: unknown): string {
    if (typeof value !== 'object' || value === null) {
      return typeof value === 'string' ? JSON.stringify(value) : `${value}`
    }
    const known = this.#known.get(value)
    if (known !== undefined) return known
    const key = this.#find(value)
    this.#known.set(value, key)
    return key
  }

  #find(value: object): string {
    if (Array.isArray(value)) return this.#number(`[${value.map(item => this.keyOf(item)).join()}]`)
    if ('toJSON' in value && typeof value.toJSON === 'function') return this.keyOf(value.toJSON())
    const keys = Object.keys(value).sort()
    return this.#number(`{${keys.map(key => `${JSON.stringify(key)}:${this.keyOf(Reflect.get(value, key))}`).join()}}`)
  }

  #number(text: string): string {
    const number = this.#numbers.get(text) ?? this.#numbers.size
    this.#numbers.set(text, number)
    return `#${number}`
  }
}
