// What is wrong with an app so that it has no page: told to the operator, at the key that is to blame.

const BRAND = Symbol.for('mcp-host.app-page-fault')

interface PageFaultFacts extends Partial<Pick<PageFault, 'at' | 'files'>> {
  readonly cause?: unknown
}

export class PageFault extends Error {
  readonly [BRAND] = true
  /** Keys of the app that lead there. */
  readonly at: readonly string[]
  /** What must change for there to be one: absolute paths. */
  readonly files: readonly string[]

  constructor(text: string, { at = [], files = [], cause }: PageFaultFacts = {}) {
    super(text, { cause })
    this.name = 'PageFault'
    this.at = at
    this.files = files
  }

  /** As `instanceof`, also of a module that was loaded twice. */
  static is(value: unknown): value is PageFault {
    return value instanceof Error && BRAND in value
  }
}
