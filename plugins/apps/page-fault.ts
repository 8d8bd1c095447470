// What is wrong with an app so that it has no page: told to the operator, at the key that is to blame.

const BRAND = Symbol.for('mcp-host.app-page-fault')

export class PageFault extends Error {
  readonly [BRAND] = true
  /** Keys of the app that lead there. */
  readonly at: readonly string[]

  constructor(text: string, at: readonly string[] = [], cause?: unknown) {
    super(text, { cause })
    this.name = 'PageFault'
    this.at = at
  }

  /** As `instanceof`, also of a module that was loaded twice. */
  static is(value: unknown): value is PageFault {
    return value instanceof Error && BRAND in value
  }
}
