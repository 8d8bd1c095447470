// An error whose message the model can read.
import { isBranded } from '../../http/describe-thrown.ts'

const TOOL_ERROR = Symbol.for('mcp-host.ToolError')

/** Thrown by tools: the message becomes the text of an `isError` result. */
export class ToolError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ToolError'
    Object.defineProperty(this, TOOL_ERROR, { value: true })
  }

  /** True for a ToolError of any copy of this module. */
  static is(value: unknown): value is ToolError {
    return isBranded(value, TOOL_ERROR)
  }
}
